// Twin of the kernel in bench/gather.py; the macros are the fields of its Shape.
#include "policy.cuh"

constexpr int LANES = DIM / 8, ROWS = THREADS / LANES;

extern "C" __global__ void __launch_bounds__(THREADS)
    gather(const uint32_t *__restrict__ ids, const uint4 *__restrict__ table, uint4 *__restrict__ out, int tiles, int rows,
           uint64_t drop, uint64_t keep) {
  const int lane = threadIdx.x % LANES;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int slot = (tile * UNROLL + i) * ROWS + threadIdx.x / LANES;
      const int row = load(ids + slot, drop);
      store(out + slot * LANES + lane, load(table + row * LANES + lane, keep), drop);
    }
  }
}
