// Twin of the kernel in bench/gather.py; the macros are the fields of its Shape.
#include "policy.cuh"

constexpr int LANES = DIM / 8 / VECTORS, ROWS = THREADS / LANES;

extern "C" __global__ void __launch_bounds__(THREADS)
    gather(const uint32_t *__restrict__ ids, const uint4 *__restrict__ table, const uint4 *__restrict__ x,
           uint4 *__restrict__ out, int tiles, int rows, uint64_t drop, uint64_t keep) {
  const int lane = threadIdx.x % LANES;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int slot = (tile * UNROLL + i) * ROWS + threadIdx.x / LANES;
      const int row = load(ids + slot, drop);
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) {
        uint4 value = load(table + (row * VECTORS + v) * LANES + lane, keep);
        const int at = (slot * VECTORS + v) * LANES + lane;
        if (RESIDUAL) {
          float a[8], b[8];
          unpack(value, a);
          unpack(load(x + at, drop), b);
#pragma unroll
          for (int k = 0; k < 8; ++k) a[k] += b[k];
          value = pack(a);
        }
        store(out + at, value, drop);
      }
    }
  }
}
