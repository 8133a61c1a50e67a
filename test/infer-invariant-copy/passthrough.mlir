// RUN: cute-cache-policy-opt %s -o %t.plain
// RUN: cute-cache-policy-opt %s -infer-invariant-copy=gpu-arch=sm_90a -o %t.passed
// RUN: diff %t.plain %t.passed
// RUN: cute-cache-policy-opt %s -infer-invariant-copy=allow-pdl=true | FileCheck %s

!universal = !cute_nvgpu.atom.universal_copy<f32, 128 b>
!relaxed = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = relaxed mem_scope = gpu>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!smem = !cute.memref<f32, smem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">
!pointer = !cute.ptr<f32, gmem, align<16>>
!tma = !cute_nvgpu.atom.non_exec_tiled_tma_store<f32, copy_bits = 128, tma_gbasis = <"(4):(1@0)">, tma_format = F32_RN>
!exec_tma = !cute_nvgpu.atom.tma_store<f32, copy_bits = 128, mode = tiled, g_stride = <"()"> tma_gbasis = <"(4):(1@0)">>
!staged = !cute.memref<f32, smem, align<128>, "((4,1)):((1,0))">
!coordinates = !cute.coord_tensor<"(0)", "((4,1)):((1@0,0))">

// In the order below: nothing is a weak load of global memory to registers, or nothing is proven.

gpu.module @kernels {
  // Ordered and volatile loads.
  cuda.kernel @ordered(%atom: !relaxed, %from: !gmem, %fragment: !rmem) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!relaxed, !gmem, !rmem)
    %iter = cute.get_iter(%from) : !gmem
    %pointer = builtin.unrealized_conversion_cast %iter : !pointer to !llvm.ptr<1>
    %0 = llvm.load volatile %pointer : !llvm.ptr<1> -> f32
    %1 = llvm.load %pointer atomic acquire {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    cuda.return
  }

  // Shared memory, as source and as destination.
  cuda.kernel @shared(%atom: !universal, %from: !gmem, %staged: !smem, %fragment: !rmem) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %staged) : (!universal, !gmem, !smem)
    cute.copy(%atom, %staged, %fragment) : (!universal, !smem, !rmem)
    cuda.return
  }

  // A store through an offset, under a condition, in a loop.
  cuda.kernel @written(%atom: !universal, %data: !gmem, %fragment: !rmem, %offset: !cute.int_tuple<"?">, %n: i32, %value: f32) attributes {cute.kernel, gpu.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    cute.copy(%atom, %data, %fragment) : (!universal, !gmem, !rmem)
    %start = cute.get_iter(%data) : !gmem
    %end = scf.for %i = %zero to %n step %one iter_args(%here = %start) -> (!pointer) : i32 {
      %next = cute.add_offset(%here, %offset) : (!pointer, !cute.int_tuple<"?">) -> !cute.ptr<f32, gmem>
      "cute.ptr.store"(%value, %next) : (f32, !cute.ptr<f32, gmem>) -> ()
      scf.yield %here : !pointer
    }
    cuda.return
  }

  // A store through an address that was loaded, one through an integer argument, an atomic, assembly, a call, an op
  // that is not known.
  cuda.kernel @loaded_address(%atom: !universal, %from: !gmem, %fragment: !rmem, %table: !llvm.ptr<1>, %value: f32) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    %address = llvm.load %table : !llvm.ptr<1> -> !llvm.ptr<1>
    llvm.store %value, %address : f32, !llvm.ptr<1>
    cuda.return
  }

  cuda.kernel @integer_argument(%atom: !universal, %from: !gmem, %fragment: !rmem, %address: i64, %value: f32) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    %pointer = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    llvm.store %value, %pointer : f32, !llvm.ptr<1>
    cuda.return
  }

  cuda.kernel @atomic(%atom: !universal, %from: !gmem, %fragment: !rmem, %counter: !llvm.ptr<1>, %value: f32) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    %old = nvvm.atomicrmw fadd %counter, %value : !llvm.ptr<1>, f32
    cuda.return
  }

  cuda.kernel @assembly(%atom: !universal, %from: !gmem, %fragment: !rmem, %to: !llvm.ptr<1>, %value: f32) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    llvm.inline_asm has_side_effects "st.global.f32 [$0], $1;", "l,f" %to, %value : (!llvm.ptr<1>, f32) -> ()
    cuda.return
  }

  func.func private @helper(!llvm.ptr<1>)

  cuda.kernel @call(%atom: !universal, %from: !gmem, %fragment: !rmem, %to: !llvm.ptr<1>) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    func.call @helper(%to) : (!llvm.ptr<1>) -> ()
    cuda.return
  }

  cuda.kernel @unknown_op(%atom: !universal, %from: !gmem, %fragment: !rmem, %to: !llvm.ptr<1>) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    llvm.intr.stackrestore %to : !llvm.ptr<1>
    cuda.return
  }

  // A load through an address that may be another.
  cuda.kernel @either(%atom: !universal, %from: !gmem, %to: !gmem, %fragment: !rmem, %which: i1) attributes {cute.kernel, gpu.kernel} {
    %source = scf.if %which -> (!gmem) {
      scf.yield %from : !gmem
    } else {
      scf.yield %to : !gmem
    }
    cute.copy(%atom, %source, %fragment) : (!universal, !gmem, !rmem)
    cute.copy(%atom, %fragment, %to) : (!universal, !rmem, !gmem)
    cuda.return
  }

  // A TMA store: only a launch tells which tensor the atom was made for, and there is none.
  cuda.kernel @tma(%atom: !universal, %from: !gmem, %fragment: !rmem, %tma: !tma, %staged: !staged, %coordinates: !coordinates) attributes {cute.kernel, gpu.kernel} {
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    %exec = cute_nvgpu.atom.make_exec_tma(%tma) : (!tma) -> !exec_tma
    cute.copy(%exec, %staged, %coordinates) : (!exec_tma, !staged, !coordinates)
    cuda.return
  }

  // Programmatic dependent launch: only where it is allowed.
  // CHECK-LABEL: cuda.kernel @dependent(
  // CHECK: llvm.load {{.*}} invariant
  cuda.kernel @dependent(%atom: !universal, %from: !gmem, %fragment: !rmem) attributes {cute.kernel, gpu.kernel} {
    nvvm.griddepcontrol wait
    cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
    cuda.return
  }
}

// A function of the host.
func.func @host(%atom: !universal, %from: !gmem, %fragment: !rmem) {
  cute.copy(%atom, %from, %fragment) : (!universal, !gmem, !rmem)
  return
}
