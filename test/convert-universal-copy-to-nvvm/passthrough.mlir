// RUN: cute-cache-policy-opt %s > %t.before
// RUN: cute-cache-policy-opt %s -convert-universal-copy-to-nvvm > %t.after
// RUN: diff %t.before %t.after

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// A universal copy without a policy.
func.func @bare(%atom: !any, %src: !gmem, %dst: !rmem) {
  cute.copy(%atom, %src, %dst) : (!any, !gmem, !rmem)
  return
}

// PTX has no cache hint for shared memory.
func.func @shared(%atom: !any, %src: !smem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  cute.copy(%0, %src, %dst) : (!any, !smem, !rmem)
  return
}

// An atom that holds its policy.
func.func @others(%atom: !g2r, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!g2r, i64)
  cute.copy(%0, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}
