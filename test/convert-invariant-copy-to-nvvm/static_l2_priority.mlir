// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_100a | FileCheck %s

!first = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = release mem_scope = gpu>
!last = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = acq_rel mem_scope = sys l2_prefetch_size = size_128b>
!normal = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = release mem_scope = cluster l1_cache_evict_priority = evict_unchanged>
!gmem = !cute.memref<f32, gmem, align<32>, "(8):(1)">
!rmem = !cute.memref<f32, rmem, align<32>, "(8):(1)">

// The scope of the atom stands for a static L2 priority; it needs no policy register.
// CHECK-LABEL: func.func @without_policy(
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::evict_first.v8.b32 {{.*}};"
// CHECK: llvm.inline_asm {{.*}}"ld.global.cg.nc.L2::evict_last.L2::128B.v8.b32 {{.*}};"
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L1::evict_unchanged.L2::evict_normal.v8.b32 {{.*}};"
// CHECK-NOT: cute.copy(
func.func @without_policy(%first: !first, %last: !last, %normal: !normal, %src: !gmem, %dst: !rmem) {
  cute.copy(%first, %src, %dst) : (!first, !gmem, !rmem)
  cute.copy(%last, %src, %dst) : (!last, !gmem, !rmem)
  cute.copy(%normal, %src, %dst) : (!normal, !gmem, !rmem)
  return
}

// PTX allows a policy beside it.
// CHECK-LABEL: func.func @with_policy(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L2::evict_first.L2::cache_hint.v8.b32 {{.*}};", {{.*}}, %[[POLICY]]
// CHECK-NOT: cute.copy(
func.func @with_policy(%atom: !first, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!first, i64)
  cute.copy(%hinted, %src, %dst) : (!first, !gmem, !rmem)
  return
}
