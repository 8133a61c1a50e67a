// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm -convert-coherent-copy-to-nvvm -convert-universal-copy-to-nvvm -convert-async-copy-to-nvvm=ptxas=13.4.59 -verify-cache-policy | FileCheck %s

!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// What the other passes have repaired is no error.
// CHECK-LABEL: @repaired
// CHECK-NOT:     cute.copy
func.func @repaired(%a: !nc, %b: !any, %c: !cg, %src: !gmem, %dst: !rmem, %staged: !smem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%a, %policy) : (!nc, i64)
  cute.copy(%0, %src, %dst) : (!nc, !gmem, !rmem)
  %1 = builtin.unrealized_conversion_cast %b, %policy : !any, i64 to !any
  cute.copy(%1, %src, %dst) : (!any, !gmem, !rmem)
  %2 = builtin.unrealized_conversion_cast %c, %policy : !cg, i64 to !cg
  cute.copy(%2, %src, %staged) : (!cg, !gmem, !smem)
  return
}
