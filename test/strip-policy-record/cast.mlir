// RUN: cute-cache-policy-opt %s -strip-policy-record | FileCheck %s
// RUN: cute-cache-policy-opt %s -strip-policy-record -strip-policy-record | FileCheck %s

!any = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4,1):(1,0)">

// The copy gets the atom that the policy was given to.
// CHECK-LABEL: @recorded
// CHECK-SAME:    (%[[ATOM:[a-z0-9]+]]:
// CHECK-NOT:     unrealized_conversion_cast
// CHECK:         cute.copy(%[[ATOM]],
func.func @recorded(%atom: !any, %src: !smem, %dst: !rmem, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !any, i64 to !any
  cute.copy(%0, %src, %dst) : (!any, !smem, !rmem)
  return
}

// Other casts stay.
// CHECK-LABEL: @other
// CHECK:         unrealized_conversion_cast
func.func @other(%pointer: !cute.ptr<f32, gmem>) -> !llvm.ptr<1> {
  %0 = builtin.unrealized_conversion_cast %pointer : !cute.ptr<f32, gmem> to !llvm.ptr<1>
  return %0 : !llvm.ptr<1>
}
