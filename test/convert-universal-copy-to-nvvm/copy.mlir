// RUN: cute-cache-policy-opt %s -convert-universal-copy-to-nvvm | FileCheck %s
// RUN: cute-cache-policy-opt %s -convert-universal-copy-to-nvvm -convert-universal-copy-to-nvvm | FileCheck %s

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!auto = !cute_nvgpu.atom.universal_copy<f32>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!gmem8 = !cute.memref<f32, gmem, align<8>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// From global memory to registers: a load with the policy.
// CHECK-LABEL: @load
// CHECK-SAME:    %[[POLICY:[a-z0-9]+]]: i64)
// CHECK-NOT:     cute.copy
// CHECK:         nvvm.load.ext %{{.*}} l2_cache_hint = %[[POLICY]] : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     cute.copy
func.func @load(%atom: !any, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  cute.copy(%0, %src, %dst) : (!any, !gmem, !rmem)
  return
}

// From registers to global memory: a store with the policy.
// CHECK-LABEL: @store
// CHECK-SAME:    %[[POLICY:[a-z0-9]+]]: i64)
// CHECK-NOT:     cute.copy
// CHECK:         nvvm.store.ext %{{.*}} l2_cache_hint = %[[POLICY]] : vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT:     cute.copy
func.func @store(%atom: !any, %src: !rmem, %dst: !gmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  cute.copy(%0, %src, %dst) : (!any, !rmem, !gmem)
  return
}

// An atom without a width picks the one that the tensor and its alignment allow.
// CHECK-LABEL: @load_of_any_width
// CHECK:         nvvm.load.ext %{{.*}} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-LABEL: @load_of_what_alignment_allows
// CHECK-COUNT-2: nvvm.load.ext %{{.*}} : !llvm.ptr<1> -> vector<2xi32>
// CHECK-NOT:     nvvm.load.ext
func.func @load_of_any_width(%atom: !auto, %src: !gmem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !auto, i64 to !auto
  cute.copy(%0, %src, %dst) : (!auto, !gmem, !rmem)
  return
}
func.func @load_of_what_alignment_allows(%atom: !auto, %src: !gmem8, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !auto, i64 to !auto
  cute.copy(%0, %src, %dst) : (!auto, !gmem8, !rmem)
  return
}
