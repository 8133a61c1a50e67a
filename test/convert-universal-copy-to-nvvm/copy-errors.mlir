// RUN: cute-cache-policy-opt %s -convert-universal-copy-to-nvvm -split-input-file -verify-diagnostics

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// The atom of a universal copy cannot carry a policy out of a branch: it has no field for one.
func.func @either(%atom: !any, %src: !gmem, %dst: !rmem, %go: i1, %policy: i64) {
  %either = scf.if %go -> (!any) {
    %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
    scf.yield %0 : !any
  } else {
    scf.yield %atom : !any
  }
  // expected-error @below {{'cute.copy' op expects the cache policy of an atom that has no field for one as a keyword of the copy, but got it through control flow}}
  cute.copy(%either, %src, %dst) : (!any, !gmem, !rmem)
  return
}
