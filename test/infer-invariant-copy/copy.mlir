// RUN: cute-cache-policy-opt %s -infer-invariant-copy=gpu-arch=sm_90a | FileCheck %s

!universal = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!first = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 l1_cache_evict_priority = evict_first>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

gpu.module @kernels {
  // A universal copy and a G2R copy from an argument that is never written.
  // CHECK-LABEL: cuda.kernel @weak(
  // CHECK: llvm.load {{.*}} invariant {{.*}} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: llvm.load {{.*}} invariant {{.*}} : !llvm.ptr<1> -> vector<4xi32>
  cuda.kernel @weak(%universal: !universal, %g2r: !g2r, %from: !gmem, %to: !gmem, %fragment: !rmem) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%universal, %from, %fragment) : (!universal, !gmem, !rmem)
    cute.copy_atom_call(%g2r, %from, %fragment) : (!g2r, !gmem, !rmem) -> ()
    cute.copy(%universal, %fragment, %to) : (!universal, !rmem, !gmem)
    cuda.return
  }

  // A cache policy stays, also one from a block argument.
  // CHECK-LABEL: cuda.kernel @policy(
  // CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
  // CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {{.*}}, %[[POLICY]] :
  cuda.kernel @policy(%g2r: !g2r, %from: !gmem, %fragment: !rmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%g2r, %policy) : (!g2r, i64)
    cute.copy(%hinted, %from, %fragment) : (!g2r, !gmem, !rmem)
    cuda.return
  }

  // So does an L1 eviction priority.
  // CHECK-LABEL: cuda.kernel @l1_priority(
  // CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L1::evict_first.v4.b32
  cuda.kernel @l1_priority(%atom: !first, %from: !gmem, %fragment: !rmem) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!first, !gmem, !rmem)
    cuda.return
  }

  // Loads that another pass has left: a plain one, and one with a policy.
  // CHECK-LABEL: cuda.kernel @loads(
  // CHECK: llvm.load %{{.*}} invariant
  // CHECK: ld.global.nc.L2::cache_hint.b32
  cuda.kernel @loads(%from: !gmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %iter = cute.get_iter(%from) : !gmem
    %pointer = builtin.unrealized_conversion_cast %iter : !cute.ptr<f32, gmem, align<16>> to !llvm.ptr<1>
    %0 = llvm.load %pointer : !llvm.ptr<1> -> f32
    %1 = nvvm.load.ext %pointer l2_cache_hint = %policy : !llvm.ptr<1> -> f32
    cuda.return
  }
}
