// RUN: cute-cache-policy-opt %s -verify-diagnostics -verify-cache-policy=warn

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!s2r = !cute_nvgpu.atom.s2r<f32 copy_bits = 128>
!async = !cute_nvgpu.atom.simt_async_copy<f32, cache = always, 128 b>
!streaming = !cute_nvgpu.atom.simt_async_copy<f32, cache = streaming, 128 b>
!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">
!generic = !cute.memref<f32, generic, align<16>, "(4,1):(1,0)">

// The policy may be for global memory, but nothing says so.
func.func @generic(%atom: !any, %src: !generic, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  // expected-warning @below {{'cute.copy' op expects its cache policy to reach memory, but got a 'universal_copy' atom that drops it: copy with 'CopyG2ROp' or 'CopyR2GOp' if the address is one of global memory}}
  cute.copy(%0, %src, %dst) : (!any, !generic, !rmem)
  // expected-warning @below {{copy with 'CopyG2ROp' or 'CopyR2GOp' if the address is one of global memory}}
  cute.copy(%0, %dst, %src) : (!any, !rmem, !generic)
  return
}

// Memory that has no hints.
func.func @shared(%atom: !any, %load: !s2r, %src: !smem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  // expected-warning @below {{leave it out, a universal copy can keep one between global memory and registers alone}}
  cute.copy(%0, %src, %dst) : (!any, !smem, !rmem)
  %1 = builtin.unrealized_conversion_cast %load, %policy : !s2r, i64 to !s2r
  // expected-warning @below {{but got a 's2r' atom that drops it: leave it out}}
  cute.copy(%1, %src, %dst) : (!s2r, !smem, !rmem)
  return
}

// A policy on one of two paths.
func.func @branch(%atom: !any, %src: !generic, %dst: !rmem, %go: i1, %policy: i64) {
  %either = scf.if %go -> (!any) {
    %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
    scf.yield %0 : !any
  } else {
    scf.yield %atom : !any
  }
  // expected-warning @below {{but got a 'universal_copy' atom that drops it: compile with --honor-cache-policy, and give it as a keyword of the copy}}
  cute.copy(%either, %src, %dst) : (!any, !generic, !rmem)
  return
}

// An asynchronous copy, and an invariant one.
func.func @others(%async: !async, %nc: !nc, %from: !gmem, %staged: !smem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %async, %policy : !async, i64 to !async
  // expected-warning @below {{but got a 'simt_async_copy' atom that drops it: compile with --honor-cache-policy}}
  cute.copy(%0, %from, %staged) : (!async, !gmem, !smem)
  %1 = cute_nvgpu.atom.set_value<cache_policy>(%nc, %policy) : (!nc, i64)
  // expected-warning @below {{but got a 'g2r' atom that drops it: compile with --honor-cache-policy}}
  cute.copy(%1, %from, %dst) : (!nc, !gmem, !rmem)
  return
}

// Without a policy, and a mode that has no effect: silence.
func.func @silent(%atom: !any, %streaming: !streaming, %from: !gmem, %staged: !smem, %dst: !rmem) {
  cute.copy(%atom, %staged, %dst) : (!any, !smem, !rmem)
  cute.copy(%streaming, %from, %staged) : (!streaming, !gmem, !smem)
  return
}
