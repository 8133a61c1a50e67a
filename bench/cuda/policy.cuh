// Loads and stores with a cache policy, as one writes them in CUDA C++. VOLATILE is `volatile` or nothing.
#pragma once
#include <cstdint>
#include <cuda_bf16.h>

__device__ __forceinline__ uint4 load(const uint4 *from, uint64_t policy) {
  uint4 v;
  asm VOLATILE("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from), "l"(policy));
  return v;
}

__device__ __forceinline__ uint2 load(const uint2 *from, uint64_t policy) {
  uint2 v;
  asm VOLATILE("ld.global.nc.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;" : "=r"(v.x), "=r"(v.y) : "l"(from), "l"(policy));
  return v;
}

__device__ __forceinline__ uint32_t load(const uint32_t *from, uint64_t policy) {
  uint32_t v;
  asm VOLATILE("ld.global.nc.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(v) : "l"(from), "l"(policy));
  return v;
}

#ifndef HINTED
#define HINTED 1
#endif

__device__ __forceinline__ void store(uint4 *to, uint4 v, uint64_t policy) {
  if (!HINTED) {
    *to = v;
    return;
  }
  asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w), "l"(policy)
               : "memory");
}

// Eight bfloat16 numbers in four registers, lower half first.
__device__ __forceinline__ void unpack(uint4 v, float (&x)[8]) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ uint4 pack(const float (&x)[8]) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
    words[i] = reinterpret_cast<const uint32_t &>(pair);
  }
  return {words[0], words[1], words[2], words[3]};
}

// The sums of eight pairs of bfloat16 numbers.
__device__ __forceinline__ uint4 add(uint4 a, uint4 b) {
  const auto sum = [](uint32_t p, uint32_t q) {
    const __nv_bfloat162 r = reinterpret_cast<__nv_bfloat162 &>(p) + reinterpret_cast<__nv_bfloat162 &>(q);
    return reinterpret_cast<const uint32_t &>(r);
  };
  return {sum(a.x, b.x), sum(a.y, b.y), sum(a.z, b.z), sum(a.w, b.w)};
}

// 2 to the power of x, with the instruction that `cute.math.exp2(x, fastmath=True)` becomes.
__device__ __forceinline__ float exp2_approx(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

template <int LANES = 32> __device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

template <int LANES = 32> __device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}
