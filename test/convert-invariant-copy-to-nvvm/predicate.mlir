// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s
// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -cute-expand-ops -canonicalize -cse | FileCheck %s --check-prefix=FOLDED

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,(2)):(1,(8))">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,(2)):(1,(4))">
!pred = !cute.memref<i8, rmem, align<1>, "(4,(2)):(0,(1))">

// Each load stands under the test of its own predicate, and nothing is loaded in front of it.
// CHECK-LABEL: func.func @predicated_copy(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK-NOT: ld.global
// CHECK: %[[BYTE:.*]] = cute.ptr.load %{{.*}} : <i8, rmem>
// CHECK: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]],
// CHECK: scf.if %[[BIT]]
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NOT: ld.global
// CHECK-NOT: cute.copy(

// It stays there through the compiler's own clean-up.
// FOLDED-LABEL: func.func @predicated_copy(
// FOLDED: %[[BYTE:.*]] = cute.ptr.load %{{.*}} : <i8, rmem>
// FOLDED-NEXT: %[[BIT:.*]] = arith.cmpi ne, %[[BYTE]],
// FOLDED-NEXT: scf.if %[[BIT]]
// FOLDED: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32
func.func @predicated_copy(%atom: !atom, %src: !gmem, %dst: !rmem, %pred: !pred, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst, %pred) : (!atom, !gmem, !rmem, !pred)
  return
}
