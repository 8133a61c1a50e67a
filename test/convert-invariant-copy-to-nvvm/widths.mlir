// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s --check-prefix=SM90
// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_100a | FileCheck %s --check-prefix=SM100

!atom_i8_8 = !cute_nvgpu.atom.g2r<i8 copy_bits = 8 invariant = true>
!gmem_i8_8 = !cute.memref<i8, gmem, align<1>, "(1):(1)">
!rmem_i8_8 = !cute.memref<i8, rmem, align<1>, "(1):(1)">

// Inline asm has no 8-bit registers: a 16-bit one takes the byte.
// SM90-LABEL: func.func @i8_8(
// SM90: %[[WORD:.*]] = llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b8 $0, $1, $2;", "=h,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i16
// SM90: %[[BYTE:.*]] = llvm.trunc %[[WORD]] : i16 to i8
// SM90: llvm.store %{{.*}} {alignment = 1 : i64}
// SM100-LABEL: func.func @i8_8(
// SM100: %[[WORD:.*]] = llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b8 $0, $1, $2;", "=h,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i16
// SM100: %[[BYTE:.*]] = llvm.trunc %[[WORD]] : i16 to i8
// SM100: llvm.store %{{.*}} {alignment = 1 : i64}
func.func @i8_8(%atom: !atom_i8_8, %src: !gmem_i8_8, %dst: !rmem_i8_8, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_i8_8, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_i8_8, !gmem_i8_8, !rmem_i8_8)
  return
}

!atom_f16_16 = !cute_nvgpu.atom.g2r<f16 copy_bits = 16 invariant = true>
!gmem_f16_16 = !cute.memref<f16, gmem, align<2>, "(1):(1)">
!rmem_f16_16 = !cute.memref<f16, rmem, align<2>, "(1):(1)">

// One 16-bit register.
// SM90-LABEL: func.func @f16_16(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b16 $0, $1, $2;", "=h,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i16
// SM90: llvm.store %{{.*}} {alignment = 2 : i64}
// SM100-LABEL: func.func @f16_16(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b16 $0, $1, $2;", "=h,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i16
// SM100: llvm.store %{{.*}} {alignment = 2 : i64}
func.func @f16_16(%atom: !atom_f16_16, %src: !gmem_f16_16, %dst: !rmem_f16_16, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f16_16, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f16_16, !gmem_f16_16, !rmem_f16_16)
  return
}

!atom_f32_32 = !cute_nvgpu.atom.g2r<f32 copy_bits = 32 invariant = true>
!gmem_f32_32 = !cute.memref<f32, gmem, align<4>, "(1):(1)">
!rmem_f32_32 = !cute.memref<f32, rmem, align<4>, "(1):(1)">

// One 32-bit register.
// SM90-LABEL: func.func @f32_32(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b32 $0, $1, $2;", "=r,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i32
// SM90: llvm.store %{{.*}} {alignment = 4 : i64}
// SM100-LABEL: func.func @f32_32(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b32 $0, $1, $2;", "=r,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i32
// SM100: llvm.store %{{.*}} {alignment = 4 : i64}
func.func @f32_32(%atom: !atom_f32_32, %src: !gmem_f32_32, %dst: !rmem_f32_32, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f32_32, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f32_32, !gmem_f32_32, !rmem_f32_32)
  return
}

!atom_f16_64 = !cute_nvgpu.atom.g2r<f16 copy_bits = 64 invariant = true>
!gmem_f16_64 = !cute.memref<f16, gmem, align<8>, "(4):(1)">
!rmem_f16_64 = !cute.memref<f16, rmem, align<8>, "(4):(1)">

// Elements smaller than a register share 32-bit ones.
// SM90-LABEL: func.func @f16_64(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b32 {$0, $1}, $2, $3;", "=r,=r,*m,l"
// SM90: llvm.store %{{.*}} {alignment = 8 : i64}
// SM100-LABEL: func.func @f16_64(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b32 {$0, $1}, $2, $3;", "=r,=r,*m,l"
// SM100: llvm.store %{{.*}} {alignment = 8 : i64}
func.func @f16_64(%atom: !atom_f16_64, %src: !gmem_f16_64, %dst: !rmem_f16_64, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f16_64, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f16_64, !gmem_f16_64, !rmem_f16_64)
  return
}

!atom_f64_64 = !cute_nvgpu.atom.g2r<f64 copy_bits = 64 invariant = true>
!gmem_f64_64 = !cute.memref<f64, gmem, align<8>, "(1):(1)">
!rmem_f64_64 = !cute.memref<f64, rmem, align<8>, "(1):(1)">

// 64-bit elements take 64-bit registers.
// SM90-LABEL: func.func @f64_64(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b64 $0, $1, $2;", "=l,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i64
// SM90: llvm.store %{{.*}} {alignment = 8 : i64}
// SM100-LABEL: func.func @f64_64(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.b64 $0, $1, $2;", "=l,*m,l" %{{.*}} : (!llvm.ptr<1>, i64) -> i64
// SM100: llvm.store %{{.*}} {alignment = 8 : i64}
func.func @f64_64(%atom: !atom_f64_64, %src: !gmem_f64_64, %dst: !rmem_f64_64, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f64_64, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f64_64, !gmem_f64_64, !rmem_f64_64)
  return
}

!atom_f32_128 = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem_f32_128 = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem_f32_128 = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// Four 32-bit registers.
// SM90-LABEL: func.func @f32_128(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l"
// SM90-NOT: ld.global
// SM90: llvm.store %{{.*}} : vector<4xi32>
// SM100-LABEL: func.func @f32_128(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l"
// SM100-NOT: ld.global
// SM100: llvm.store %{{.*}} : vector<4xi32>
func.func @f32_128(%atom: !atom_f32_128, %src: !gmem_f32_128, %dst: !rmem_f32_128, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f32_128, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f32_128, !gmem_f32_128, !rmem_f32_128)
  return
}

!atom_f64_128 = !cute_nvgpu.atom.g2r<f64 copy_bits = 128 invariant = true>
!gmem_f64_128 = !cute.memref<f64, gmem, align<16>, "(2):(1)">
!rmem_f64_128 = !cute.memref<f64, rmem, align<16>, "(2):(1)">

// Two 64-bit registers.
// SM90-LABEL: func.func @f64_128(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b64 {$0, $1}, $2, $3;", "=l,=l,*m,l"
// SM90-NOT: ld.global
// SM90: llvm.store %{{.*}} : vector<2xi64>
// SM100-LABEL: func.func @f64_128(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b64 {$0, $1}, $2, $3;", "=l,=l,*m,l"
// SM100-NOT: ld.global
// SM100: llvm.store %{{.*}} : vector<2xi64>
func.func @f64_128(%atom: !atom_f64_128, %src: !gmem_f64_128, %dst: !rmem_f64_128, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f64_128, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f64_128, !gmem_f64_128, !rmem_f64_128)
  return
}

!atom_f32_256 = !cute_nvgpu.atom.g2r<f32 copy_bits = 256 invariant = true>
!gmem_f32_256 = !cute.memref<f32, gmem, align<32>, "(8):(1)">
!rmem_f32_256 = !cute.memref<f32, rmem, align<32>, "(8):(1)">

// Two loads of 16 bytes each below sm_100, one of 32 bytes from there on.
// SM90-LABEL: func.func @f32_256(
// SM90-SAME: %[[POLICY:[a-z0-9]+]]: i64
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l" %[[FROM:.*]], %[[POLICY]] :
// SM90: %[[NEXT:.*]] = llvm.getelementptr %[[FROM]][16]
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", "=r,=r,=r,=r,*m,l" %[[NEXT]], %[[POLICY]] :
// SM90-NOT: ld.global
// SM90: llvm.store %{{.*}} : vector<4xi64>
// SM100-LABEL: func.func @f32_256(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v8.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, $8, $9;", "=r,=r,=r,=r,=r,=r,=r,=r,*m,l"
// SM100-NOT: ld.global
// SM100: llvm.store %{{.*}} : vector<4xi64>
func.func @f32_256(%atom: !atom_f32_256, %src: !gmem_f32_256, %dst: !rmem_f32_256, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f32_256, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f32_256, !gmem_f32_256, !rmem_f32_256)
  return
}

!atom_f64_256 = !cute_nvgpu.atom.g2r<f64 copy_bits = 256 invariant = true>
!gmem_f64_256 = !cute.memref<f64, gmem, align<32>, "(4):(1)">
!rmem_f64_256 = !cute.memref<f64, rmem, align<32>, "(4):(1)">

// The same with 64-bit registers.
// SM90-LABEL: func.func @f64_256(
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b64 {$0, $1}, $2, $3;", "=l,=l,*m,l"
// SM90: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v2.b64 {$0, $1}, $2, $3;", "=l,=l,*m,l"
// SM90-NOT: ld.global
// SM90: llvm.store %{{.*}} : vector<4xi64>
// SM100-LABEL: func.func @f64_256(
// SM100: llvm.inline_asm {{.*}}"ld.global.nc.L2::cache_hint.v4.b64 {$0, $1, $2, $3}, $4, $5;", "=l,=l,=l,=l,*m,l"
// SM100-NOT: ld.global
// SM100: llvm.store %{{.*}} : vector<4xi64>
func.func @f64_256(%atom: !atom_f64_256, %src: !gmem_f64_256, %dst: !rmem_f64_256, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom_f64_256, i64)
  cute.copy(%hinted, %src, %dst) : (!atom_f64_256, !gmem_f64_256, !rmem_f64_256)
  return
}
