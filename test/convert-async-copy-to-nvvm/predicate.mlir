// RUN: cute-cache-policy-opt %s -convert-async-copy-to-nvvm=ptxas=13.4.59 | FileCheck %s
// In 4.6 the compiler puts a branch around the whole copy instead.
// UNSUPPORTED: dsl-4.6

!cg = !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>
!gmem = !cute.memref<f32, gmem, align<16>, "(4,1):(1,0)">
!smem = !cute.memref<f32, smem, align<16>, "(4,1):(1,0)">
!pred = !cute.memref<i1, rmem, align<1>, "(4,1):(0,0)">

// A predicate chooses how many bytes are read; the others are zeros.
// CHECK-LABEL: @predicate
// CHECK:         %[[SIZE:.*]] = arith.select
// CHECK:         "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2, $3;", "r,l,r,l,~{memory}" %{{.*}}, %{{.*}}, %[[SIZE]], %{{.*}} : (i32, !llvm.ptr<1>, i32, i64)
func.func @predicate(%atom: !cg, %src: !gmem, %dst: !smem, %pred: !pred, %policy: i64) {
  %0 = builtin.unrealized_conversion_cast %atom, %policy : !cg, i64 to !cg
  cute.copy(%0, %src, %dst, %pred) : (!cg, !gmem, !smem, !pred)
  return
}
