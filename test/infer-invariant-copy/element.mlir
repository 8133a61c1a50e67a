// RUN: cute-cache-policy-opt %s -infer-invariant-copy=gpu-arch=sm_90a | FileCheck %s

!gmem = !cute.memref<f32, gmem, align<16>, "(4,?):(1,4)">
!vector = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!coord = !cute.coord<"(0,?)">

gpu.module @kernels {
  // What `tensor[i]` is, with the compiler's own address.
  // CHECK-LABEL: cuda.kernel @element(
  // CHECK-NOT: cute.memref.load
  // CHECK: cute.crd2idx
  // CHECK: %[[VALUE:.*]] = llvm.load {{.*}} invariant {{.*}} : !llvm.ptr<1> -> f32
  // CHECK: cute.memref.store({{.*}}, %[[VALUE]])
  cuda.kernel @element(%from: !gmem, %to: !gmem, %at: !coord) attributes {cute.kernel, gpu.kernel} {
    %value = cute.memref.load(%from, %at) : (!gmem, !coord) -> f32
    cute.memref.store(%to, %at, %value) : (!gmem, !coord, f32) -> ()
    cuda.return
  }

  // What `tensor.load()` can be.
  // CHECK-LABEL: cuda.kernel @vector(
  // CHECK-NOT: cute.memref.load_vec
  // CHECK: %[[VALUE:.*]] = llvm.load {{.*}} invariant {{.*}} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: cute.memref.store_vec(%[[VALUE]],
  cuda.kernel @vector(%from: !vector, %to: !vector) attributes {cute.kernel, gpu.kernel} {
    %value = cute.memref.load_vec(%from) : (!vector) -> vector<4xf32>
    cute.memref.store_vec(%value, %to) : (vector<4xf32>, !vector) -> ()
    cuda.return
  }

  // A loop that the compiler is asked to vectorize keeps the op that it looks for.
  // CHECK-LABEL: cuda.kernel @vectorized(
  // CHECK: cute.memref.load(
  cuda.kernel @vectorized(%from: !vector, %to: !vector, %n: i32) attributes {cute.kernel, gpu.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      %at = cute.make_coord(%i) : (i32) -> !cute.coord<"?">
      %value = cute.memref.load(%from, %at) : (!vector, !cute.coord<"?">) -> f32
      cute.memref.store(%to, %at, %value) : (!vector, !cute.coord<"?">, f32) -> ()
    } {cutlass.vectorize = true}
    cuda.return
  }
}
