// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// The load takes the policy of the atom, has no side effects, and its data lands in the fragment.
// CHECK-LABEL: func.func @one_vector(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: %[[FROM:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !cute.ptr<f32, gmem, align<16>> to !llvm.ptr<1>
// CHECK: %[[TO:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !cute.ptr<f32, rmem, align<16>> to !llvm.ptr
// CHECK: %[[DATA:.*]] = llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l" %[[FROM]], %[[POLICY]] : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK: llvm.extractvalue %[[DATA]][0]
// CHECK: llvm.extractvalue %[[DATA]][1]
// CHECK: llvm.extractvalue %[[DATA]][2]
// CHECK: llvm.extractvalue %[[DATA]][3]
// CHECK: llvm.store %{{.*}}, %[[TO]] {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr
// CHECK-NOT: cute.copy(
// CHECK-NOT: llvm.load
func.func @one_vector(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

!gmem_rest = !cute.memref<f32, gmem, align<16>, "(4,(2,3)):(1,(8,32))">
!rmem_rest = !cute.memref<f32, rmem, align<16>, "(4,(2,3)):(1,(4,8))">

// Static rest modes: the loop over them is the compiler's own, with one load in it.
// CHECK-LABEL: func.func @static_layout(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK: cute.crd2idx({{.*}}!cute.layout<"(4,((2,3))):(1,((8,32)))">
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK-NOT: ld.global
// CHECK-NOT: cute.copy(
func.func @static_layout(%atom: !atom, %src: !gmem_rest, %dst: !rmem_rest, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem_rest, !rmem_rest)
  return
}

!gmem_strided = !cute.memref<f32, gmem, align<16>, "(4,2):(1,?{i64 div=4})">
!rmem_strided = !cute.memref<f32, rmem, align<16>, "(4,2):(1,4)">

// A stride that is only known at run time.
// CHECK-LABEL: func.func @dynamic_layout(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK: cute.crd2idx({{.*}}(1,(?{i64 div=4}))
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK-NOT: cute.copy(
func.func @dynamic_layout(%atom: !atom, %src: !gmem_strided, %dst: !rmem_strided, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem_strided, !rmem_strided)
  return
}

!tiled = !cute.tiled_copy<!cute_nvgpu.atom.g2r<bf16 copy_bits = 128 invariant = true>, layout_copy_tv = <"((32,4),(8,4)):((128,4),(16,1))">, tiler_mn = <"[16:1;256:1]">>
!gmem_tiled = !cute.memref<bf16, gmem, align<16>, "((8,4),(1,1)):((1,?{i64 div=8}),(0,0))">
!rmem_tiled = !cute.memref<bf16, rmem, align<32>, "((8,4),(1,1)):((1,8),(0,0))">

// A tiled copy whose threads hold four atoms each: the four loads have the one policy.
// CHECK-LABEL: func.func @tiled_copy(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr
// CHECK-NOT: cute.copy(
func.func @tiled_copy(%tiled: !tiled, %src: !gmem_tiled, %dst: !rmem_tiled, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%tiled, %policy) : (!tiled, i64)
  cute.copy(%hinted, %src, %dst) : (!tiled, !gmem_tiled, !rmem_tiled)
  return
}

// Copies of one signature share their expansion, but each keeps its own policy and its own operands.
// CHECK-LABEL: func.func @two_policies(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !memref_gmem_f32{{[_0-9]*}}, %[[B:[a-z0-9]+]]: !memref_gmem_f32
// CHECK-SAME: %[[P:[a-z0-9]+]]: i64, %[[Q:[a-z0-9]+]]: i64
// CHECK: cute.get_iter(%[[A]])
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[P]]
// CHECK: cute.get_iter(%[[B]])
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[Q]]
func.func @two_policies(%atom: !atom, %a: !gmem, %b: !gmem, %dst: !rmem, %p: i64, %q: i64) {
  %first = cute_nvgpu.atom.set_value<cache_policy>(%atom, %p) : (!atom, i64)
  cute.copy(%first, %a, %dst) : (!atom, !gmem, !rmem)
  %second = cute_nvgpu.atom.set_value<cache_policy>(%atom, %q) : (!atom, i64)
  cute.copy(%second, %b, %dst) : (!atom, !gmem, !rmem)
  return
}

gpu.module @device {
  // Kernels, device functions and host functions alike.
  // CHECK-LABEL: cuda.kernel @kernel(
  // CHECK: ld.global.nc.L2::cache_hint.v4.b32
  cuda.kernel @kernel(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
    cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
    cuda.return
  }
  // CHECK-LABEL: cuda.kernel @second_kernel(
  // CHECK: ld.global.nc.L2::cache_hint.v4.b32
  // CHECK-NOT: cute.copy(
  cuda.kernel @second_kernel(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) attributes {cute.kernel, gpu.kernel} {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
    cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
    cuda.return
  }
}
