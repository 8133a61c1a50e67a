// Twin of the kernel in bench/gather.py; the macros are the fields of its Shape.
#include "policy.cuh"

#if BAG == 1
using Ids = uint32_t;
#elif BAG == 2
using Ids = uint2;
#else
using Ids = uint4;
#endif

constexpr int LANES = DIM / 8 / VECTORS, ROWS = THREADS / LANES;

extern "C" __global__ void __launch_bounds__(THREADS)
    gather(const uint32_t *__restrict__ ids, const uint4 *__restrict__ table, const uint4 *__restrict__ x,
           uint4 *__restrict__ out, int tiles, int rows, uint64_t drop, uint64_t keep) {
  const int lane = threadIdx.x % LANES;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int slot = (tile * UNROLL + i) * ROWS + threadIdx.x / LANES;
      const auto words = load(reinterpret_cast<const Ids *>(ids) + slot, drop);
      const auto &rows_of_slot = reinterpret_cast<const int(&)[BAG]>(words);
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) {
        const int at = (slot * VECTORS + v) * LANES + lane;
        uint4 value = load(table + (rows_of_slot[0] * VECTORS + v) * LANES + lane, keep);
        uint4 addends[BAG];
#pragma unroll
        for (int b = 1; b < BAG; ++b) addends[b - 1] = load(table + (rows_of_slot[b] * VECTORS + v) * LANES + lane, keep);
        if (RESIDUAL) addends[BAG - 1] = load(x + at, drop);
        if (BAG > 1 || RESIDUAL) {
          float total[8], part[8];
          unpack(value, total);
#pragma unroll
          for (int b = 0; b < BAG - 1 + RESIDUAL; ++b) {
            unpack(addends[b], part);
#pragma unroll
            for (int k = 0; k < 8; ++k) total[k] += part[k];
          }
          value = pack(total);
        }
        store(out + at, value, drop);
      }
    }
  }
}
