// Twin of the kernel in bench/gather.py; the macros are the fields of its Gather.
#include "policy.cuh"

constexpr int LANES = DIM / 8 / VECTORS, GROUPS = THREADS / LANES, INDICES = BATCH * BAG, PIECES = WIDE ? 2 : 1;

#if BATCH * BAG == 1
using Ids = uint32_t;
#elif BATCH * BAG == 2
using Ids = uint2;
#else
using Ids = uint4;
#endif

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    gather(const uint32_t *__restrict__ ids, const uint32_t *__restrict__ pages, const uint4 *__restrict__ table,
           const uint4 *__restrict__ x, uint4 *__restrict__ out, int tiles, int rows, uint64_t drop, uint64_t keep) {
  const int lane = threadIdx.x % LANES;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int group = (tile * UNROLL + i) * GROUPS + threadIdx.x / LANES;
      const auto words = load(reinterpret_cast<const Ids *>(ids) + group, drop);
      const auto &indices = reinterpret_cast<const int(&)[INDICES]>(words);
#pragma unroll
      for (int k = 0; k < BATCH; ++k) {
        int bag[BAG];
#pragma unroll
        for (int b = 0; b < BAG; ++b) bag[b] = PAGED ? load(pages + indices[k * BAG + b], keep) : indices[k * BAG + b];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
          const int at = (((group * BATCH + k) * VECTORS + v) * LANES + lane) * PIECES;
          uint4 values[BAG];
#pragma unroll
          for (int b = 0; b < BAG; ++b) values[b] = load(table + (bag[b] * VECTORS + v) * LANES + lane, keep);
          if (BAG == 1 && !WIDE) {  // one sum of bfloat16 numbers needs no float32
            store(out + at, RESIDUAL ? add(values[0], load(x + at, drop)) : values[0], drop);
            continue;
          }
          float total[8], part[8];
          unpack(values[0], total);
#pragma unroll
          for (int b = 1; b < BAG; ++b) {
            unpack(values[b], part);
#pragma unroll
            for (int e = 0; e < 8; ++e) total[e] += part[e];
          }
          if (RESIDUAL) {
            if (WIDE) {
              reinterpret_cast<uint4 &>(part[0]) = load(x + at, drop);
              reinterpret_cast<uint4 &>(part[4]) = load(x + at + 1, drop);
            } else {
              unpack(load(x + at, drop), part);
            }
#pragma unroll
            for (int e = 0; e < 8; ++e) total[e] += part[e];
          }
          if (WIDE) {
            store(out + at, reinterpret_cast<uint4 &>(total[0]), drop);
            store(out + at + 1, reinterpret_cast<uint4 &>(total[4]), drop);
          } else {
            store(out + at, pack(total), drop);
          }
        }
      }
    }
  }
}
