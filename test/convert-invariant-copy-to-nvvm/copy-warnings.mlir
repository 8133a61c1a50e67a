// RUN: cute-cache-policy-opt %s -verify-diagnostics -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s

!load = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!store = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

gpu.module @kernels {
  // The kernel writes what it loads: the load stays coherent, and keeps the policy.
  // CHECK-LABEL: cuda.kernel @in_place(
  // CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
  // CHECK-NOT: ld.global.nc
  // CHECK: nvvm.load.ext {{.*}}l2_cache_hint = %[[POLICY]]
  // CHECK-NOT: ld.global.nc
  cuda.kernel @in_place(%load: !load, %store: !store, %data: !gmem, %fragment: !rmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%load, %policy) : (!load, i64)
    // expected-warning@below {{'cute.copy' op becomes a coherent load, because kernel 'in_place' also writes argument 2 at line 19: use invariant=False or pass the part that is written as another argument}}
    cute.copy(%hinted, %data, %fragment) : (!load, !gmem, !rmem)
    cute.copy(%store, %fragment, %data) : (!store, !rmem, !gmem)
    cuda.return
  }

  // It writes something else: no warning.
  // CHECK-LABEL: cuda.kernel @out_of_place(
  // CHECK: ld.global.nc.L2::cache_hint.v4.b32
  cuda.kernel @out_of_place(%load: !load, %store: !store, %from: !gmem, %to: !gmem, %fragment: !rmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%load, %policy) : (!load, i64)
    cute.copy(%hinted, %from, %fragment) : (!load, !gmem, !rmem)
    cute.copy(%store, %fragment, %to) : (!store, !rmem, !gmem)
    cuda.return
  }
}
