// Twins of the kernels in bench/rowwise.py; the macros are the fields of its Rows, of which ONCE chooses the kernel.
#include "policy.cuh"

constexpr int VECTORS = COLUMNS / 8, WARPS = THREADS / 32;
constexpr float LOG2E = 1.4426950408889634f, EPSILON = 1e-6f;

#if ONCE
extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    read_once(const uint4 *__restrict__ x, const uint4 *__restrict__ weight, uint4 *__restrict__ y, int rows,
              uint64_t drop, uint64_t keep) {
  const int lane = threadIdx.x % 32;
  for (int tile = blockIdx.x; tile < rows / (WARPS * UNROLL); tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int row = (tile * UNROLL + i) * WARPS + threadIdx.x / 32;
      float values[VECTORS / 32][8], scale, sum = 0;
#pragma unroll
      for (int v = 0; v < VECTORS / 32; ++v) unpack(load(x + row * VECTORS + v * 32 + lane, drop), values[v]);
      if (SOFTMAX) {
        float largest = -INFINITY;
#pragma unroll
        for (int v = 0; v < VECTORS / 32; ++v)
#pragma unroll
          for (int k = 0; k < 8; ++k) largest = fmaxf(largest, values[v][k]);
        largest = warp_max(largest) * LOG2E;
#pragma unroll
        for (int v = 0; v < VECTORS / 32; ++v)
#pragma unroll
          for (int k = 0; k < 8; ++k) sum += values[v][k] = exp2_approx(values[v][k] * LOG2E - largest);
        scale = 1.0f / warp_sum(sum);
      } else {
#pragma unroll
        for (int v = 0; v < VECTORS / 32; ++v)
#pragma unroll
          for (int k = 0; k < 8; ++k) sum += values[v][k] * values[v][k];
        scale = rsqrtf(warp_sum(sum) / COLUMNS + EPSILON);
      }
#pragma unroll
      for (int v = 0; v < VECTORS / 32; ++v) {
        float w[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        if (!SOFTMAX) unpack(load(weight + v * 32 + lane, keep), w);
#pragma unroll
        for (int k = 0; k < 8; ++k) values[v][k] *= scale * w[k];
        store(y + row * VECTORS + v * 32 + lane, pack(values[v]), drop);
      }
    }
  }
}

#else
template <int LANES> __device__ __forceinline__ void lanes_combine(float &largest, float &total) {
  if (SOFTMAX) {
    const float own = largest;
    largest = warp_max<LANES>(own);
    total *= exp2_approx(own - largest);
  }
  total = warp_sum<LANES>(total);
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    read_twice(const uint4 *__restrict__ x, const uint4 *__restrict__ weight, uint4 *__restrict__ y, int rows,
               uint64_t drop, uint64_t keep) {
  __shared__ float scratch[2][WARPS];
  constexpr int STEPS = VECTORS / (THREADS * UNROLL);
  const int tid = threadIdx.x;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float largest = -INFINITY, total = 0, value[8];
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) {
        unpack(load(x + row * VECTORS + (step * UNROLL + i) * THREADS + tid, keep), value);
        if (SOFTMAX) {
          const float before = largest;
#pragma unroll
          for (int k = 0; k < 8; ++k) largest = fmaxf(largest, value[k] *= LOG2E);
          total *= exp2_approx(before - largest);
#pragma unroll
          for (int k = 0; k < 8; ++k) total += exp2_approx(value[k] - largest);
        } else {
#pragma unroll
          for (int k = 0; k < 8; ++k) total += value[k] * value[k];
        }
      }
    }
    lanes_combine<32>(largest, total);
    __syncthreads();
    if (tid % 32 == 0) scratch[0][tid / 32] = largest, scratch[1][tid / 32] = total;
    __syncthreads();
    largest = scratch[0][tid % WARPS], total = scratch[1][tid % WARPS];
    lanes_combine<WARPS>(largest, total);
    const float scale = SOFTMAX ? 1.0f / total : rsqrtf(total / COLUMNS + EPSILON);
#pragma unroll 1
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) {
        const int at = (step * UNROLL + i) * THREADS + tid;
        unpack(load(x + row * VECTORS + at, drop), value);
        if (SOFTMAX) {
#pragma unroll
          for (int k = 0; k < 8; ++k) value[k] = exp2_approx(value[k] * LOG2E - largest) * scale;
        } else {
          float w[8];
          unpack(load(weight + at, keep), w);
#pragma unroll
          for (int k = 0; k < 8; ++k) value[k] = value[k] * scale * w[k];
        }
        store(y + row * VECTORS + at, pack(value), drop);
      }
    }
  }
}
#endif
