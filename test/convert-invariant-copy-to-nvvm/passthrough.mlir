// RUN: cute-cache-policy-opt %s -split-input-file -o %t.plain
// RUN: cute-cache-policy-opt %s -split-input-file -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -o %t.passed
// RUN: diff %t.plain %t.passed
// RUN: FileCheck %s --input-file=%t.passed

!invariant = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!coherent = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!store = !cute_nvgpu.atom.r2g<f32 copy_bits = 128>
!universal = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// Not invariant: the compiler keeps the policy by itself.
// CHECK-LABEL: func.func @coherent(
// CHECK: cute.copy(
func.func @coherent(%atom: !coherent, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!coherent, i64)
  cute.copy(%hinted, %src, %dst) : (!coherent, !gmem, !rmem)
  return
}

// Invariant without a policy: the compiler's load is what was asked for.
// CHECK-LABEL: func.func @no_policy(
// CHECK: cute.copy(
// CHECK: cute.copy_atom_call(
func.func @no_policy(%src: !gmem, %dst: !rmem) {
  %atom = cute.make_atom() : () -> !invariant
  cute.copy(%atom, %src, %dst) : (!invariant, !gmem, !rmem)
  cute.copy_atom_call(%atom, %src, %dst) : (!invariant, !gmem, !rmem) -> ()
  return
}

// An atom from outside that nothing is known of has no policy either.
// CHECK-LABEL: func.func @unknown_policy(
// CHECK: cute.copy(
func.func @unknown_policy(%atom: !invariant, %src: !gmem, %dst: !rmem) {
  cute.copy(%atom, %src, %dst) : (!invariant, !gmem, !rmem)
  return
}

// Other atoms.
// CHECK-LABEL: func.func @other_atoms(
// CHECK: cute.copy(
// CHECK: cute.copy(
func.func @other_atoms(%store: !store, %universal: !universal, %gmem: !gmem, %rmem: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%store, %policy) : (!store, i64)
  cute.copy(%hinted, %rmem, %gmem) : (!store, !rmem, !gmem)
  cute.copy(%universal, %gmem, %rmem) : (!universal, !gmem, !rmem)
  return
}

// Other ops, dead ones and a policy that no copy uses among them: no pass but this one runs.
// CHECK-LABEL: func.func @other_ops(
// CHECK: cute_nvgpu.atom.set_value<cache_policy>
// CHECK: arith.addi
func.func @other_ops(%atom: !invariant, %src: !gmem, %policy: i64) {
  %unused = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!invariant, i64)
  %iter = cute.get_iter(%src) : !gmem
  %sum = arith.addi %policy, %policy : i64
  return
}

// -----

// A module without anything.
// CHECK: module {
// CHECK-NEXT: }
module {}
