// Twins of the kernels in bench/inferred.py; the macros are the fields of its Plain. RESTRICT: `__restrict__`, or not.
#ifndef VOLATILE
#define VOLATILE
#endif
#include "policy.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    copy_loop(const uint4 *RESTRICT x, uint4 *RESTRICT y, int tiles) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (tile * UNROLL + i) * THREADS + threadIdx.x;
      y[at] = x[at];
    }
  }
}

#if COLUMNS >= 256
extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    rowwise(const uint4 *RESTRICT x, const uint4 *RESTRICT weight, uint4 *RESTRICT y, int rows) {
  constexpr int VECTORS = COLUMNS / 8, WARPS = THREADS / 32;
  [[maybe_unused]] constexpr float LOG2E = 1.4426950408889634f, EPSILON = 1e-6f;
  const int lane = threadIdx.x % 32;
  for (int tile = blockIdx.x; tile < rows / (WARPS * UNROLL); tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int row = (tile * UNROLL + i) * WARPS + threadIdx.x / 32;
      float values[VECTORS / 32][8], scale, sum = 0;
#pragma unroll
      for (int v = 0; v < VECTORS / 32; ++v) unpack(x[row * VECTORS + v * 32 + lane], values[v]);
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
        if (!SOFTMAX) unpack(weight[v * 32 + lane], w);
#pragma unroll
        for (int k = 0; k < 8; ++k) values[v][k] *= scale * w[k];
        y[row * VECTORS + v * 32 + lane] = pack(values[v]);
      }
    }
  }
}
#endif

#if COLUMNS >= 64
extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    rotary(const uint4 *RESTRICT x, const uint4 *RESTRICT cosines, const uint4 *RESTRICT sines, uint4 *RESTRICT y,
           int tokens, int heads) {
  constexpr int HALF = COLUMNS / 16, STEP = THREADS / HALF;
  const int at = threadIdx.x % HALF, start = threadIdx.x / HALF;
  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
    for (int turn = 0; turn < heads / (STEP * UNROLL); ++turn) {
#pragma unroll
      for (int i = 0; i < UNROLL; ++i) {
        const int head = (turn * UNROLL + i) * STEP + start, from = (token * heads + head) * 2 * HALF + at;
        float c[8], s[8], a[8], b[8], low[8], high[8];
        unpack(cosines[token * HALF + at], c);
        unpack(sines[token * HALF + at], s);
        unpack(x[from], a);
        unpack(x[from + HALF], b);
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          low[k] = a[k] * c[k] - b[k] * s[k];
          high[k] = b[k] * c[k] + a[k] * s[k];
        }
        y[from] = pack(low);
        y[from + HALF] = pack(high);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    dequantize(const int *RESTRICT packed, const float *RESTRICT scales, uint4 *RESTRICT y, int tiles) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (tile * UNROLL + i) * THREADS + threadIdx.x, word = packed[at];
      const float scale = scales[at / (COLUMNS / 8)];
      float values[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) values[k] = float((word >> 4 * k & 15) - 8) * scale;
      y[at] = pack(values);
    }
  }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    adamw(const uint2 *RESTRICT gradient, const float4 *RESTRICT old, const float4 *RESTRICT old_mean,
          const float4 *RESTRICT old_square, float4 *RESTRICT out, float4 *RESTRICT out_mean,
          float4 *RESTRICT out_square, int tiles) {
  constexpr float RATE = 1e-3f, BETA1 = 0.9f, BETA2 = 0.999f, ADAM_EPSILON = 1e-8f, DECAY = 0.01f;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (tile * UNROLL + i) * THREADS + threadIdx.x;
      const uint2 words = gradient[at];
      float4 parameter = old[at], mean = old_mean[at], square = old_square[at];
      const float g[4] = {__uint_as_float(words.x << 16), __uint_as_float(words.x & 0xffff0000u),
                          __uint_as_float(words.y << 16), __uint_as_float(words.y & 0xffff0000u)};
      float *p = &parameter.x, *m = &mean.x, *v = &square.x;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        m[k] = m[k] * BETA1 + g[k] * (1 - BETA1);
        v[k] = v[k] * BETA2 + g[k] * g[k] * (1 - BETA2);
        float root;
        asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v[k] * (1 / (1 - BETA2))));
        p[k] = p[k] * (1 - RATE * DECAY) - m[k] * (RATE / (1 - BETA1)) / (root + ADAM_EPSILON);
      }
      out_mean[at] = mean;
      out_square[at] = square;
      out[at] = parameter;
    }
  }
}
