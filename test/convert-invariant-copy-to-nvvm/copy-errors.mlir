// RUN: cute-cache-policy-opt %s -split-input-file -verify-diagnostics -convert-invariant-copy-to-nvvm=gpu-arch=sm_75

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// The target has no loads with a cache hint.
func.func @old_target(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  // expected-error@below {{'cute.copy' op expects a load that sm_75 has, but got 'ld.global.nc.L2::cache_hint.v4.b32': '.L2::cache_hint' expects sm_80 or later}}
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// -----

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!generic = !cute.memref<f32, generic, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// Only global memory has non-coherent loads.
func.func @generic_source(%atom: !atom, %src: !generic, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  // expected-error@below {{'cute.copy' op expects a source in global memory and a fragment in registers, but got !cute.memref<f32, generic, align<16>, "(4):(1)">}}
  cute.copy(%hinted, %src, %dst) : (!atom, !generic, !rmem)
  return
}

// -----

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!smem = !cute.memref<f32, smem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// What the IR itself forbids, the verifier finds before the pass runs.
func.func @shared_source(%atom: !atom, %src: !smem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  // expected-error@below {{'cute.copy' op expects src to be gmem-based or generic memref, but got smem}}
  cute.copy(%hinted, %src, %dst) : (!atom, !smem, !rmem)
  return
}

// -----

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>

func.func @narrow_policy(%atom: !atom, %policy: i32) {
  // expected-error@below {{Invalid operand type for field cache_policy}}
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i32)
  return
}

// -----

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// A copy out of scope is no error, on any target.
func.func @out_of_scope(%atom: !atom, %src: !gmem, %dst: !rmem) {
  cute.copy(%atom, %src, %dst) : (!atom, !gmem, !rmem)
  return
}
