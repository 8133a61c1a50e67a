// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s

!atom = !cute_nvgpu.atom.g2r<f16 copy_bits = 64 invariant = true>
!gmem = !cute.memref<f16, gmem, align<8>, "(4):(1)">
!rmem = !cute.memref<f16, rmem, align<8>, "(4):(1)">
!pred = !cute.memref<i8, rmem, align<1>, "(1):(1)">

// One call is one load.
// CHECK-LABEL: func.func @call(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK-NOT: scf.for
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b32 {$0, $1}, $2, $3;", "=r,=r,*m,l" %{{.*}}, %[[POLICY]] : (!llvm.ptr<1>, i64) -> !llvm.struct<(i32, i32)>
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64}
// CHECK-NOT: cute.copy_atom_call
func.func @call(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy_atom_call(%hinted, %src, %dst) : (!atom, !gmem, !rmem) -> ()
  return
}

// The predicate of a call stays on the load.
// CHECK-LABEL: func.func @predicated_call(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: scf.if
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK-NOT: cute.copy_atom_call
func.func @predicated_call(%atom: !atom, %src: !gmem, %dst: !rmem, %pred: !pred, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy_atom_call(%hinted, %src, %dst, %pred) : (!atom, !gmem, !rmem, !pred) -> ()
  return
}
