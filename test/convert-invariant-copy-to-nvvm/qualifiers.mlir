// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_100a | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s --check-prefixes=CHECK,SM90

!gmem = !cute.memref<f32, gmem, align<32>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<32>, "(4):(1)">

!l1 = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = release l2_prefetch_size = size_256b l1_cache_evict_priority = no_allocate>

// An invariant atom with an L1 priority and a prefetch size; there is no policy, and none is made up.
// CHECK-LABEL: func.func @without_policy(
// CHECK-NOT: set_value
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {$0, $1, $2, $3}, $4;", "=r,=r,=r,=r,*m"
// CHECK-NOT: cute.copy(
// CHECK-NOT: nvvm.load.ext
func.func @without_policy(%atom: !l1, %src: !gmem, %dst: !rmem) {
  cute.copy(%atom, %src, %dst) : (!l1, !gmem, !rmem)
  return
}

// The same with a policy.
// CHECK-LABEL: func.func @with_policy(
// CHECK-SAME: %[[POLICY:[a-z0-9]+]]: i64
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l" %{{.*}}, %[[POLICY]]
// CHECK-NOT: cute.copy(
func.func @with_policy(%atom: !l1, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!l1, i64)
  cute.copy(%hinted, %src, %dst) : (!l1, !gmem, !rmem)
  return
}

!cg = !cute_nvgpu.atom.g2r<f32 copy_bits = 32 mem_order = acq_rel>
!cs = !cute_nvgpu.atom.g2r<f32 copy_bits = 32 mem_order = sc l2_prefetch_size = size_64b>
!gmem_one = !cute.memref<f32, gmem, align<4>, "(1):(0)">
!rmem_one = !cute.memref<f32, rmem, align<4>, "(1):(0)">

// Cache modes: the order of the atom stands for one.
// CHECK-LABEL: func.func @cache_modes(
// CHECK: llvm.inline_asm {{.*}}"ld.global.cg.nc.b32 $0, $1;", "=r,*m"
// CHECK: llvm.inline_asm {{.*}}"ld.global.cs.nc.L2::64B.b32 $0, $1;", "=r,*m"
// CHECK-NOT: cute.copy(
func.func @cache_modes(%global: !cg, %streaming: !cs, %src: !gmem_one, %dst: !rmem_one) {
  cute.copy(%global, %src, %dst) : (!cg, !gmem_one, !rmem_one)
  cute.copy(%streaming, %src, %dst) : (!cs, !gmem_one, !rmem_one)
  return
}

!wide = !cute_nvgpu.atom.g2r<f64 copy_bits = 256 mem_order = release l1_cache_evict_priority = evict_last>
!gmem_wide = !cute.memref<f64, gmem, align<32>, "(4):(1)">
!rmem_wide = !cute.memref<f64, rmem, align<32>, "(4):(1)">

// 256 bits are one load or two, each with the qualifiers.
// CHECK-LABEL: func.func @wide(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L1::evict_last.v4.b64 {$0, $1, $2, $3}, $4;"
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L1::evict_last.v2.b64 {$0, $1}, $2;"
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L1::evict_last.v2.b64 {$0, $1}, $2;"
// CHECK-NOT: ld.global
// CHECK-NOT: cute.copy(
func.func @wide(%atom: !wide, %src: !gmem_wide, %dst: !rmem_wide) {
  cute.copy(%atom, %src, %dst) : (!wide, !gmem_wide, !rmem_wide)
  return
}

!tiled = !cute.tiled_copy<!cute_nvgpu.atom.g2r<bf16 copy_bits = 128 mem_order = sc>, layout_copy_tv = <"((32,4),(8,4)):((128,4),(16,1))">, tiler_mn = <"[16:1;256:1]">>
!gmem_tiled = !cute.memref<bf16, gmem, align<16>, "((8,4),(1,1)):((1,?{i64 div=8}),(0,0))">
!rmem_tiled = !cute.memref<bf16, rmem, align<32>, "((8,4),(1,1)):((1,8),(0,0))">

// A tiled copy of such an atom.
// CHECK-LABEL: func.func @tiled_copy(
// CHECK: llvm.inline_asm {{.*}}"ld.global.cs.nc.v4.b32 {$0, $1, $2, $3}, $4;"
// CHECK-NOT: cute.copy(
func.func @tiled_copy(%tiled: !tiled, %src: !gmem_tiled, %dst: !rmem_tiled) {
  cute.copy(%tiled, %src, %dst) : (!tiled, !gmem_tiled, !rmem_tiled)
  return
}

!wide_f32 = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = release l2_prefetch_size = size_128b>
!gmem_wide_f32 = !cute.memref<f32, gmem, align<32>, "(8):(1)">
!rmem_wide_f32 = !cute.memref<f32, rmem, align<32>, "(8):(1)">

// Elements of 32 bits get registers of 32 bits, whatever vector the compiler makes of them.
// CHECK-LABEL: func.func @wide_of_narrow_elements(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::128B.v8.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, $8;"
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::128B.v4.b32 {$0, $1, $2, $3}, $4;"
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::128B.v4.b32 {$0, $1, $2, $3}, $4;"
// CHECK-NOT: ld.global
// CHECK-NOT: cute.copy(
func.func @wide_of_narrow_elements(%atom: !wide_f32, %src: !gmem_wide_f32, %dst: !rmem_wide_f32) {
  cute.copy(%atom, %src, %dst) : (!wide_f32, !gmem_wide_f32, !rmem_wide_f32)
  return
}

// The qualifiers are in the type: control flow cannot lose them, nor can a policy that only one path sets.
// CHECK-LABEL: func.func @control_flow(
// CHECK: scf.for
// CHECK: cute_nvgpu.atom.set_value<cache_policy>
// CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>
// CHECK: llvm.inline_asm {{.*}}"ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {{.*}} %{{.*}}, %[[POLICY]]
// CHECK-NOT: cute.copy(
func.func @control_flow(%atom: !l1, %src: !gmem, %dst: !rmem, %policy: i64, %c0: index, %c1: index, %n: index, %yes: i1) {
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%a = %atom) -> (!l1) {
    %chosen = scf.if %yes -> (!l1) {
      %hinted = cute_nvgpu.atom.set_value<cache_policy>(%a, %policy) : (!l1, i64)
      scf.yield %hinted : !l1
    } else {
      scf.yield %a : !l1
    }
    cute.copy(%chosen, %src, %dst) : (!l1, !gmem, !rmem)
    scf.yield %a : !l1
  }
  return
}

!coherent = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 l1_cache_evict_priority = no_allocate>
!acquire = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = acquire mem_scope = gpu>
!invariant = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>

// What the compiler lowers as it is written stays as it is.
// CHECK-LABEL: func.func @untouched(
// CHECK-COUNT-3: cute.copy(
// CHECK-NOT: inline_asm
func.func @untouched(%coherent: !coherent, %acquire: !acquire, %invariant: !invariant, %src: !gmem, %dst: !rmem) {
  cute.copy(%coherent, %src, %dst) : (!coherent, !gmem, !rmem)
  cute.copy(%acquire, %src, %dst) : (!acquire, !gmem, !rmem)
  cute.copy(%invariant, %src, %dst) : (!invariant, !gmem, !rmem)
  return
}
