// RUN: cute-cache-policy-opt %s -verify-cache-policy -split-input-file -verify-diagnostics

!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// Every loss is an error, not only the first.
func.func @invariant(%atom: !nc, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!nc, i64)
  // expected-error @below {{'cute.copy' op expects its cache policy to reach memory, but got a 'g2r' atom that drops it: compile with --honor-cache-policy}}
  cute.copy(%0, %src, %dst) : (!nc, !gmem, !rmem)
  // expected-error @below {{'cute.copy' op expects its cache policy to reach memory}}
  cute.copy(%0, %src, %dst) : (!nc, !gmem, !rmem)
  return
}

// -----

!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// A policy that comes out of a branch.
func.func @branch(%atom: !g2r, %src: !gmem, %dst: !rmem, %go: i1, %policy: i64) {
  %either = scf.if %go -> (!g2r) {
    %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!g2r, i64)
    scf.yield %0 : !g2r
  } else {
    scf.yield %atom : !g2r
  }
  // expected-error @below {{but got a 'g2r' atom that drops it: compile with --honor-cache-policy}}
  cute.copy(%either, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}

// -----

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!generic = !cute.memref<f32, generic, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// Policies that Python drops.
func.func @recorded(%atom: !any, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  // expected-error @below {{but got a 'universal_copy' atom that drops it: compile with --honor-cache-policy, or copy with 'CopyG2ROp'}}
  cute.copy(%0, %src, %dst) : (!any, !gmem, !rmem)
  // expected-error @below {{but got a 'universal_copy' atom that drops it: compile with --honor-cache-policy, or copy with 'CopyR2GOp'}}
  cute.copy(%0, %dst, %src) : (!any, !rmem, !gmem)
  return
}
func.func @shared(%atom: !any, %src: !smem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  // expected-error @below {{but got a 'universal_copy' atom that drops it: leave it out, a universal copy can keep one between global memory and registers alone}}
  cute.copy(%0, %src, %dst) : (!any, !smem, !rmem)
  return
}
func.func @generic(%atom: !any, %src: !generic, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  // expected-error @below {{but got a 'universal_copy' atom that drops it: copy with 'CopyG2ROp' or 'CopyR2GOp' if the address is one of global memory}}
  cute.copy(%0, %src, %dst) : (!any, !generic, !rmem)
  return
}

// -----

!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!streaming = !cute_nvgpu.atom.simt_async_copy<f32, cache = streaming, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">

// Asynchronous copies: the policy, and a cache mode that PTX does not have.
func.func @async(%atom: !cg, %streaming: !streaming, %src: !gmem, %dst: !smem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !cg, i64 to !cg
  // expected-error @below {{but got a 'simt_async_copy' atom that drops it: compile with --honor-cache-policy and install nvidia-cutlass-dsl[cu13] 4.8 or later, or load with 'CopyG2ROp'}}
  cute.copy(%0, %src, %dst) : (!cg, !gmem, !smem)
  // expected-error @below {{'cute.copy' op expects one of always, global for 'cache', but got 'streaming': it has no effect}}
  cute.copy(%streaming, %src, %dst) : (!streaming, !gmem, !smem)
  return
}

// -----

!constant = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = constant>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// A memory order that PTX does not have.
func.func @order(%atom: !constant, %src: !gmem, %dst: !rmem) {
  // expected-error @below {{'cute.copy' op expects one of weak, relaxed, acquire, volatile, mmio for 'mem_order', but got 'constant': it has no effect}}
  cute.copy(%atom, %src, %dst) : (!constant, !gmem, !rmem)
  return
}

// -----

!nc = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!generic = !cute.memref<f32, generic, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// `--honor-cache-policy` refuses it too: PTX has no non-coherent load of a generic address.
func.func @invariant_generic(%atom: !nc, %src: !generic, %dst: !rmem, %policy: i64) {
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!nc, i64)
  // expected-error @below {{but got a 'g2r' atom that drops it: make its source a pointer to global memory}}
  cute.copy(%0, %src, %dst) : (!nc, !generic, !rmem)
  return
}
