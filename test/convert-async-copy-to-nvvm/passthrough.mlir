// RUN: cute-cache-policy-opt %s > %t.before
// RUN: cute-cache-policy-opt %s -convert-async-copy-to-nvvm=ptxas=13.3.27 > %t.after
// RUN: diff %t.before %t.after

!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">

// A copy without a policy.
func.func @bare(%atom: !cg, %src: !gmem, %dst: !smem) {
  cute.copy(%atom, %src, %dst) : (!cg, !gmem, !smem)
  return
}

// A ptxas that is not known to keep the policy.
func.func @old_ptxas(%atom: !cg, %src: !gmem, %dst: !smem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !cg, i64 to !cg
  cute.copy(%0, %src, %dst) : (!cg, !gmem, !smem)
  return
}
