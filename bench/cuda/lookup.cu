// Twin of the kernel in bench/lookup.py; the macros are the fields of its Lookup.
#include "policy.cuh"

__device__ __forceinline__ uint4 operator+(uint4 a, uint4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    lookup(const uint4 *__restrict__ x, const uint4 *__restrict__ table, uint4 *__restrict__ out, int tiles, int entries,
           uint64_t drop, uint64_t keep) {
  uint4 total = {0, 0, 0, 0};
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (tile * UNROLL + i) * THREADS + threadIdx.x;
      const uint4 ids = load(x + at, drop);
      const int index[4] = {int(ids.x), int(ids.y), int(ids.z), int(ids.w)};
      uint4 value = ids;
#pragma unroll
      for (int g = 0; g < GATHERS; ++g) value = value + load(table + index[g], keep);
      if (WRITES)
        store(out + at, value, drop);
      else
        total = total + value;
    }
  }
  if (!WRITES) out[blockIdx.x * THREADS + threadIdx.x] = total;
}
