// RUN: cute-cache-policy-opt %s -convert-coherent-copy-to-nvvm | FileCheck %s
// RUN: cute-cache-policy-opt %s -convert-coherent-copy-to-nvvm -convert-coherent-copy-to-nvvm | FileCheck %s

!g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128>
!r2g = !cute_nvgpu.atom.r2g<f32 copy_bits = 128>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// A load whose policy depends on a condition has the policy of the branch that was taken.
// CHECK-LABEL: @load_of_either_policy
// CHECK:         %[[ATOM:.*]] = scf.if
// CHECK:         %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
// CHECK-NOT:     cute.copy
// CHECK:         nvvm.load.ext %{{.*}} l2_cache_hint = %[[POLICY]] : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     cute.copy
func.func @load_of_either_policy(%atom: !g2r, %src: !gmem, %dst: !rmem, %go: i1, %first: i64, %last: i64) {
  %either = scf.if %go -> (!g2r) {
    %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %first) : (!g2r, i64)
    scf.yield %0 : !g2r
  } else {
    %1 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %last) : (!g2r, i64)
    scf.yield %1 : !g2r
  }
  cute.copy(%either, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}

// So has a store.
// CHECK-LABEL: @store_of_either_policy
// CHECK:         %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>
// CHECK:         nvvm.store.ext %{{.*}} l2_cache_hint = %[[POLICY]] : vector<4xi32>, !llvm.ptr<1>
func.func @store_of_either_policy(%atom: !r2g, %src: !rmem, %dst: !gmem, %go: i1, %first: i64, %last: i64) {
  %either = scf.if %go -> (!r2g) {
    %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %first) : (!r2g, i64)
    scf.yield %0 : !r2g
  } else {
    %1 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %last) : (!r2g, i64)
    scf.yield %1 : !r2g
  }
  cute.copy(%either, %src, %dst) : (!r2g, !rmem, !gmem)
  return
}

// Along a path without a policy the priority is the normal one.
// CHECK-LABEL: @load_of_a_policy_or_none
// CHECK:         else
// CHECK:           %[[NORMAL:.*]] = arith.constant 1652821063244972032 : i64
// CHECK:           cute_nvgpu.atom.set_value<cache_policy>(%{{.*}}, %[[NORMAL]])
// CHECK:         nvvm.load.ext
func.func @load_of_a_policy_or_none(%atom: !g2r, %src: !gmem, %dst: !rmem, %go: i1, %first: i64) {
  %either = scf.if %go -> (!g2r) {
    %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %first) : (!g2r, i64)
    scf.yield %0 : !g2r
  } else {
    scf.yield %atom : !g2r
  }
  cute.copy(%either, %src, %dst) : (!g2r, !gmem, !rmem)
  return
}

// A policy that goes around a loop is read from the atom of the iteration.
// CHECK-LABEL: @load_in_a_loop
// CHECK:         scf.for {{.*}} iter_args(%[[ATOM:.*]] = %{{.*}})
// CHECK:           cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
// CHECK:           nvvm.load.ext
func.func @load_in_a_loop(%atom: !g2r, %src: !gmem, %dst: !rmem, %n: i32, %first: i64, %last: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = cute_nvgpu.atom.set_value<cache_policy>(%atom, %first) : (!g2r, i64)
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%now = %0) -> (!g2r) : i32 {
    cute.copy(%now, %src, %dst) : (!g2r, !gmem, !rmem)
    %next = cute_nvgpu.atom.set_value<cache_policy>(%atom, %last) : (!g2r, i64)
    scf.yield %next : !g2r
  }
  return
}
