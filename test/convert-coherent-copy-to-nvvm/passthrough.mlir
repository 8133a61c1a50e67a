// RUN: cute-cache-policy-opt %s > %t.before
// RUN: cute-cache-policy-opt %s -convert-coherent-copy-to-nvvm > %t.after
// RUN: diff %t.before %t.after

!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// A copy without a policy.
func.func @bare(%atom: !g2r, %src: !gmem, %dst: !rmem) {
  cute.copy(%atom, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}

// A copy whose policy is set where the compiler looks.
func.func @seen(%atom: !g2r, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!g2r, i64)
  cute.copy(%0, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}

// Invariant and universal copies have passes of their own.
func.func @others(%atom: !nc, %any: !any, %src: !gmem, %dst: !rmem, %go: i1, %policy: i64) {
  %either = scf.if %go -> (!nc) {
    %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!nc, i64)
    scf.yield %0 : !nc
  } else {
    scf.yield %atom : !nc
  }
  cute.copy(%either, %src, %dst) : (!nc, !gmem, !rmem)
  %recorded = builtin.unrealized_conversion_cast %any, %policy : !any, i64 to !any
  cute.copy(%recorded, %src, %dst) : (!any, !gmem, !rmem)
  return
}
