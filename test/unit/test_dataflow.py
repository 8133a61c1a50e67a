"""How values cross launches and calls: each argument comes from the operand that is passed for it, in every form."""

from __future__ import annotations

import pytest
from cutlass._mlir import ir

from cute_cache_policy import _dsl
from cute_cache_policy.bindings import raw, walk
from cute_cache_policy.dataflow import CallGraph, incoming

#: The host passes %1 and %2, and other values of the same types that the form has in front of them or behind.
FORMS = {
    "func.call": """
        func.func private @callee(%a: i64, %b: i64) { func.return }
        func.func @host(%0: i64, %1: i64, %2: i64) { func.call @callee(%1, %2) : (i64, i64) -> ()  func.return }
    """,
    "llvm.call": """
        llvm.func @callee(%a: i64, %b: i64) { llvm.return }
        llvm.func @host(%0: i64, %1: i64, %2: i64) { llvm.call @callee(%1, %2) : (i64, i64) -> ()  llvm.return }
    """,
    "llvm.call with a bundle": """
        llvm.func @callee(%a: i64, %b: i64) { llvm.return }
        llvm.func @host(%0: i64, %1: i64, %2: i64) {
          llvm.call @callee(%1, %2) ["tag"(%0, %0 : i64, i64)] : (i64, i64) -> ()
          llvm.return
        }
    """,
    "cuda.launch": """
        gpu.module @kernels { cuda.kernel @callee(%a: i64, %b: i64) attributes {cute.kernel} { cuda.return } }
        func.func @host(%0: i64, %1: i64, %2: i64, %stream: !cuda.stream) {
          %n = arith.constant 1 : i32
          %m = arith.constant 0 : i64
          %r = "cuda.launch"(%n, %n, %n, %n, %n, %n, %m, %stream, %1, %2) <{callee = @kernels::@callee,
            operandSegmentSizes = array<i32: 3, 3, 1, 1, 2>, assume_kernel_attr = #cuda.assume_kernel_attr<true>}>
            : (i32, i32, i32, i32, i32, i32, i64, !cuda.stream, i64, i64) -> !cuda.result
          func.return
        }
    """,
    "cuda.launch_ex": """
        gpu.module @kernels { cuda.kernel @callee(%a: i64, %b: i64) attributes {cute.kernel} { cuda.return } }
        func.func @host(%0: i64, %1: i64, %2: i64, %stream: !cuda.stream) {
          %n = arith.constant 1 : i32
          %m = arith.constant 0 : i64
          %config = cuda.launch_cfg.create<max_attrs = 17 : i32> (blockDim = (%n, %n, %n), dynamicSmemBytes = %m,
            gridDim = (%n, %n, %n), stream = %stream) : i32, i32, i32, i64, i32, i32, i32, !cuda.stream
            -> !cuda.launch_cfg<max_attrs = 17>
          %r = cuda.launch_ex @kernels::@callee<%config> (%1, %2) {assume_kernel_attr = #cuda.assume_kernel_attr<true>}
            : !cuda.launch_cfg<max_attrs = 17>, (i64, i64) -> !cuda.result
          func.return
        }
    """,
    "gpu.launch_func": """
        gpu.module @kernels { gpu.func @callee(%a: i64, %b: i64) kernel { gpu.return } }
        func.func @host(%0: i64, %1: i64, %2: i64) {
          %t = gpu.wait async
          %n = arith.constant 1 : index
          %m = arith.constant 0 : i32
          %u = gpu.launch_func async [%t] @kernels::@callee blocks in (%n, %n, %n) threads in (%n, %n, %n)
            dynamic_shared_memory_size %m args(%1 : i64, %2 : i64)
          func.return
        }
    """,
    "gpu.launch_func on a stream": """
        gpu.module @kernels { gpu.func @callee(%a: i64, %b: i64) kernel { gpu.return } }
        func.func @host(%0: i64, %1: i64, %2: i64, %stream: !llvm.ptr) {
          %n = arith.constant 1 : i64
          gpu.launch_func <%stream : !llvm.ptr> @kernels::@callee blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64
            args(%1 : i64, %2 : i64)
          func.return
        }
    """,
    "lir.launch": """
        lir.func @callee(%a: i64, %b: i64) attributes {cute.kernel, gpu.kernel} { lir.return }
        func.func @host(%0: i64, %1: i64, %2: i64) {
          %s = lir.launch @callee(%1, %2) : (i64, i64) -> i32
          func.return
        }
    """,
    "lir.launch on a stream": """
        lir.func @callee(%a: i64, %b: i64) attributes {cute.kernel, gpu.kernel} { lir.return }
        func.func @host(%0: !ptr.ptr<#ptr.generic_space>, %1: i64, %2: i64) {
          %s = lir.launch stream(%0 : !ptr.ptr<#ptr.generic_space>) workspace(%0 : !ptr.ptr<#ptr.generic_space>)
            @callee(%1, %2) : (i64, i64) -> i32
          func.return
        }
    """,
}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_come_from_what_is_passed(form: str) -> None:
    if form == "lir.launch on a stream" and _dsl.version() < "4.8":
        pytest.skip("lir.launch has a stream from 4.8 on")
    with ir.Context():
        module = ir.Module.parse(f"module attributes {{gpu.container_module}} {{ {FORMS[form]} }}").operation
        functions = {str(op.attributes["sym_name"]): op for op in walk(module) if "function_type" in op.attributes}
        host, callee = (raw(functions[name].regions[0].blocks[0].arguments) for name in ('"host"', '"callee"'))
        calls = CallGraph(module)
        passed = [[edge.value for edge in incoming(argument, calls) or ()] for argument in callee]
        assert passed == [[host[1]], [host[2]]]
