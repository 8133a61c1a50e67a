// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -verify-diagnostics

!first = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = release mem_scope = gpu>
!gmem = !cute.memref<f32, gmem, align<32>, "(8):(1)">
!rmem = !cute.memref<f32, rmem, align<32>, "(8):(1)">

// A target without 256-bit loads has no static L2 priority, and two narrow loads would lose it.
func.func @target(%atom: !first, %src: !gmem, %dst: !rmem) {
  // expected-error @below {{'cute.copy' op expects a load that sm_90a has, but got 'ld.global.nc.L2::evict_first.v8.b32': a 256-bit load ('.v8.b32', '.v4.b64') expects sm_100 or later (PTX ISA 9.7.9.8); a static L2 eviction priority expects sm_100 or later: use a cache policy (PTX ISA 9.7.9.9)}}
  cute.copy(%atom, %src, %dst) : (!first, !gmem, !rmem)
  return
}
