// RUN: cute-cache-policy-opt %s > %t.before
// RUN: cute-cache-policy-opt %s -verify-cache-policy > %t.after
// RUN: diff %t.before %t.after

!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!acquire = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = acquire>
!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// Policies that the compiler keeps, and copies without one.
func.func @kept(%a: !g2r, %b: !nc, %c: !acquire, %d: !cg, %src: !gmem, %dst: !rmem, %staged: !smem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%a, %policy) : (!g2r, i64)
  cute.copy(%0, %src, %dst) : (!g2r, !gmem, !rmem)
  cute.copy(%a, %src, %dst) : (!g2r, !gmem, !rmem)
  cute.copy(%b, %src, %dst) : (!nc, !gmem, !rmem)
  cute.copy(%c, %src, %dst) : (!acquire, !gmem, !rmem)
  cute.copy(%d, %src, %staged) : (!cg, !gmem, !smem)
  return
}
