// RUN: cute-cache-policy-opt %s -split-input-file -verify-diagnostics -convert-invariant-copy-to-nvvm=gpu-arch=sm_75

!atom = !cute_nvgpu.atom.g2r<f16 copy_bits = 64 invariant = true>
!gmem = !cute.memref<f16, gmem, align<8>, "(4):(1)">
!rmem = !cute.memref<f16, rmem, align<8>, "(4):(1)">

// The target has no loads with a cache hint.
func.func @old_target(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  // expected-error@below {{'cute.copy_atom_call' op expects a load that sm_75 has, but got 'ld.global.nc.L2::cache_hint.v2.b32': '.L2::cache_hint' expects sm_80 or later}}
  cute.copy_atom_call(%hinted, %src, %dst) : (!atom, !gmem, !rmem) -> ()
  return
}

// -----

!atom = !cute_nvgpu.atom.g2r<f16 copy_bits = 64 invariant = true>
!generic = !cute.memref<f16, generic, align<8>, "(4):(1)">
!rmem = !cute.memref<f16, rmem, align<8>, "(4):(1)">

// Only global memory has non-coherent loads.
func.func @generic_source(%atom: !atom, %src: !generic, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  // expected-error@below {{'cute.copy_atom_call' op expects a source in global memory and a fragment in registers, but got !cute.memref<f16, generic, align<8>, "(4):(1)">}}
  cute.copy_atom_call(%hinted, %src, %dst) : (!atom, !generic, !rmem) -> ()
  return
}
