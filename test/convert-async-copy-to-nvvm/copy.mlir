// RUN: cute-cache-policy-opt %s -convert-async-copy-to-nvvm=ptxas=13.4.59 | FileCheck %s
// RUN: cute-cache-policy-opt %s -convert-async-copy-to-nvvm=ptxas=13.4.59 -convert-async-copy-to-nvvm | FileCheck %s

!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!ca = !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 32 b>
!streaming = !cute_nvgpu.atom.simt_async_copy<f32, cache = streaming, 32 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">

// The policy is the last operand.
// CHECK-LABEL: @global
// CHECK-SAME:    %[[POLICY:[a-z0-9]+]]: i64)
// CHECK-NOT:     cute.copy
// CHECK:         llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2;", "r,l,l,~{memory}" %{{.*}}, %{{.*}}, %[[POLICY]] : (i32, !llvm.ptr<1>, i64)
// CHECK-NOT:     cute.copy
func.func @global(%atom: !cg, %src: !gmem, %dst: !smem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !cg, i64 to !cg
  cute.copy(%0, %src, %dst) : (!cg, !gmem, !smem)
  return
}

// One copy of four bytes, in a loop.
// CHECK-LABEL: @always
// CHECK:         scf.for
// CHECK:         "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 4, $2;"
// CHECK-NOT:     cp.async
func.func @always(%atom: !ca, %src: !gmem, %dst: !smem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !ca, i64 to !ca
  cute.copy(%0, %src, %dst) : (!ca, !gmem, !smem)
  return
}

// A cache mode that PTX does not have becomes the one that the compiler makes of it.
// CHECK-LABEL: @streaming
// CHECK:         "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 4, $2;"
func.func @streaming(%atom: !streaming, %src: !gmem, %dst: !smem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !streaming, i64 to !streaming
  cute.copy(%0, %src, %dst) : (!streaming, !gmem, !smem)
  return
}
