// Twin of the kernel in bench/gemv.py; the macros are the fields of its Matrix.
#include "policy.cuh"

__device__ __forceinline__ float dot(uint4 weights, const uint4 *x, int at, uint64_t keep) {
  float sum = 0, v[8];
#if BITS == 16
  float w[8];
  unpack(weights, w);
  unpack(load(x + at, keep), v);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += w[i] * v[i];
#else
  const uint32_t words[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    unpack(load(x + at * 4 + j, keep), v);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += float(int(words[j] >> 4 * i & 15) - 8) * v[i];
  }
#endif
  return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    gemv(const uint4 *__restrict__ weights, const uint4 *__restrict__ x, float *__restrict__ y, int rows, uint64_t drop,
         uint64_t keep) {
  constexpr int VECTORS = COLUMNS * BITS / 128;
  const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  float total = 0;
  for (int step = 0; step < VECTORS / (32 * UNROLL); ++step) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (step * UNROLL + i) * 32 + lane;
      total += dot(load(weights + row * VECTORS + at, drop), x, at, keep);
    }
  }
  total = warp_sum(total);
  if (lane == 0) y[row] = total;
}
