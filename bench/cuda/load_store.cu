// Twins of the kernels in bench/load_store.py. THREADS, UNROLL: threads a block, vectors a thread and loop iteration.
#include "policy.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    copy_loop(const uint4 *__restrict__ x, uint4 *__restrict__ y, int tiles, uint64_t drop) {
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int at = (tile * UNROLL + i) * THREADS + threadIdx.x;
      y[at] = load(x + at, drop);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
    add(const uint4 *__restrict__ x, const uint4 *__restrict__ y, uint4 *__restrict__ z, uint64_t drop) {
  const int at = blockIdx.x * THREADS + threadIdx.x;
  const uint4 a = load(x + at, drop), b = load(y + at, drop);
  const auto sum = [](uint32_t p, uint32_t q) { return __float_as_uint(__uint_as_float(p) + __uint_as_float(q)); };
  z[at] = {sum(a.x, b.x), sum(a.y, b.y), sum(a.z, b.z), sum(a.w, b.w)};
}
