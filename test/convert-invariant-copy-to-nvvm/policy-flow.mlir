// RUN: cute-cache-policy-opt %s -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a | FileCheck %s

!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">

// A constant: evict_first.
// CHECK-LABEL: func.func @constant(
// CHECK: %[[POLICY:.*]] = arith.constant 1364590687093260288 : i64
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @constant(%atom: !atom, %src: !gmem, %dst: !rmem) {
  %policy = arith.constant 0x12F0000000000000 : i64
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// A policy that the kernel makes itself.
// CHECK-LABEL: func.func @createpolicy(
// CHECK: %[[POLICY:.*]] = llvm.inline_asm "createpolicy
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @createpolicy(%atom: !atom, %src: !gmem, %dst: !rmem) {
  %policy = llvm.inline_asm "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;", "=l" : () -> i64
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// A policy that is chosen at run time.
// CHECK-LABEL: func.func @chosen_policy(
// CHECK: %[[POLICY:.*]] = scf.if %{{.*}} -> (i64)
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @chosen_policy(%atom: !atom, %src: !gmem, %dst: !rmem, %which: i1, %p: i64, %q: i64) {
  %policy = scf.if %which -> (i64) {
    scf.yield %p : i64
  } else {
    scf.yield %q : i64
  }
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// A policy that changes from one iteration to the next.
// CHECK-LABEL: func.func @policy_in_a_loop(
// CHECK: scf.for %{{.*}} iter_args(%[[POLICY:[a-z0-9]+]] = %{{.*}}) -> (i64)
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @policy_in_a_loop(%atom: !atom, %src: !gmem, %dst: !rmem, %n: i32, %p: i64, %q: i64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %last = scf.for %i = %zero to %n step %one iter_args(%policy = %p) -> (i64) : i32 {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
    cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
    scf.yield %q : i64
  }
  return
}

// The atom itself is chosen at run time: the load asks the chosen one.
// CHECK-LABEL: func.func @chosen_atom(
// CHECK: %[[ATOM:.*]] = scf.if
// CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @chosen_atom(%atom: !atom, %src: !gmem, %dst: !rmem, %which: i1, %p: i64, %q: i64) {
  %chosen = scf.if %which -> (!atom) {
    %first = cute_nvgpu.atom.set_value<cache_policy>(%atom, %p) : (!atom, i64)
    scf.yield %first : !atom
  } else {
    %second = cute_nvgpu.atom.set_value<cache_policy>(%atom, %q) : (!atom, i64)
    scf.yield %second : !atom
  }
  cute.copy(%chosen, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// One side has no policy: it gets evict_normal, which is what a load without a policy does.
// CHECK-LABEL: func.func @one_side_without_policy(
// CHECK-SAME: %[[BARE:[a-z0-9]+]]: !cute_nvgpu.atom.g2r
// CHECK: %[[ATOM:.*]] = scf.if
// CHECK: } else {
// CHECK-NEXT: %[[NORMAL:.*]] = arith.constant 1652821063244972032 : i64
// CHECK-NEXT: %[[SET:.*]] = cute_nvgpu.atom.set_value<cache_policy>(%[[BARE]], %[[NORMAL]])
// CHECK-NEXT: scf.yield %[[SET]]
// CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @one_side_without_policy(%atom: !atom, %src: !gmem, %dst: !rmem, %which: i1, %p: i64) {
  %chosen = scf.if %which -> (!atom) {
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %p) : (!atom, i64)
    scf.yield %hinted : !atom
  } else {
    scf.yield %atom : !atom
  }
  cute.copy(%chosen, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

// An atom that a loop hands on.
// CHECK-LABEL: func.func @atom_in_a_loop(
// CHECK: scf.for %{{.*}} iter_args(%[[ATOM:[a-z0-9]+]] = %{{.*}})
// CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @atom_in_a_loop(%atom: !atom, %src: !gmem, %dst: !rmem, %n: i32, %p: i64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %p) : (!atom, i64)
  %last = scf.for %i = %zero to %n step %one iter_args(%each = %hinted) -> (!atom) : i32 {
    cute.copy(%each, %src, %dst) : (!atom, !gmem, !rmem)
    scf.yield %each : !atom
  }
  return
}

// Unstructured control flow: of the two ways into a block, one sets a policy.
// CHECK-LABEL: func.func @jump(
// CHECK: %[[SET:.*]] = cute_nvgpu.atom.set_value<cache_policy>(
// CHECK-NEXT: %[[NORMAL:.*]] = arith.constant 1652821063244972032 : i64
// CHECK-NEXT: %[[NEUTRAL:.*]] = cute_nvgpu.atom.set_value<cache_policy>(%{{.*}}, %[[NORMAL]])
// CHECK-NEXT: cf.cond_br %{{.*}}, ^bb1(%[[SET]] : {{.*}}), ^bb1(%[[NEUTRAL]] : {{.*}})
// CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>
// CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
func.func @jump(%atom: !atom, %src: !gmem, %dst: !rmem, %p: i64, %c: i1) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %p) : (!atom, i64)
  cf.cond_br %c, ^copy(%hinted : !atom), ^copy(%atom : !atom)
^copy(%either: !atom):
  cute.copy(%either, %src, %dst) : (!atom, !gmem, !rmem)
  return
}

module @launched attributes {gpu.container_module} {
  gpu.module @kernels {
    // The policy comes with an atom that is a kernel argument; the launch below sets it.
    // CHECK-LABEL: cuda.kernel @takes_atom(
    // CHECK-SAME: %[[ATOM:[a-z0-9]+]]: !cute_nvgpu.atom.g2r
    // CHECK: %[[POLICY:.*]] = cute_nvgpu.atom.get_value<cache_policy>(%[[ATOM]])
    // CHECK: ld.global.nc.L2::cache_hint.v4.b32 {{.*}} %{{.*}}, %[[POLICY]] :
    cuda.kernel @takes_atom(%atom: !atom, %src: !gmem, %dst: !rmem) attributes {cute.kernel, gpu.kernel} {
      cute.copy(%atom, %src, %dst) : (!atom, !gmem, !rmem)
      cuda.return
    }

    // No launch gives this one a policy: left to the compiler.
    // CHECK-LABEL: cuda.kernel @takes_bare_atom(
    // CHECK-NEXT: cute.copy(
    cuda.kernel @takes_bare_atom(%atom: !atom, %src: !gmem, %dst: !rmem) attributes {cute.kernel, gpu.kernel} {
      cute.copy(%atom, %src, %dst) : (!atom, !gmem, !rmem)
      cuda.return
    }
  }

  func.func @host(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64, %stream: !cuda.stream) {
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i64
    %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
    %config = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%one, %one, %one), dynamicSmemBytes = %zero, gridDim = (%one, %one, %one), stream = %stream) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream -> !cuda.launch_cfg<max_attrs = 17>
    %first = cuda.launch_ex @kernels::@takes_atom<%config> (%hinted, %src, %dst) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!atom, !gmem, !rmem) -> !cuda.result
    %second = cuda.launch_ex @kernels::@takes_bare_atom<%config> (%atom, %src, %dst) {assume_kernel_attr = #cuda.assume_kernel_attr<true>} : !cuda.launch_cfg<max_attrs = 17>, (!atom, !gmem, !rmem) -> !cuda.result
    return
  }
}
