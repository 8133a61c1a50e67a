"""The policy is kept on every way that the DSL has to compile a kernel. One test a way; each reads the PTX.

Implicit calls and JAX read their settings when `cutlass` is imported, so those run in a process of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cutlass.base_dsl.compiler as dsl_compiler
import pytest
from cutlass import Float32, Int32, Int64, cute
from cutlass.cutlass_dsl import CuTeDSL

from cute_cache_policy import HonorCachePolicy, _dsl
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.ptx import Target
from cute_cache_policy.sass import global_accesses
from support.scale import EVICT_FIRST, HINTED, arguments, copy_vector, launch, loads

EVICT_LAST = 0x14F0000000000000


@pytest.fixture
def options(tmp_path: Path) -> str:
    """Compile options: ours, and PTX in `tmp_path`."""
    return f"--honor-cache-policy --gpu-arch sm_90a --keep-ptx --dump-dir {tmp_path}"


@cute.kernel
def staged(x: cute.Tensor, y: cute.Tensor, n: Int32):
    """A policy out of an `if`, and one that changes in a loop."""
    policy = Int64(EVICT_FIRST)
    if n > 3:
        policy = Int64(EVICT_LAST)
    copy_vector(x, y, policy)
    for i in range(n):
        copy_vector(cute.local_tile(x, (512,), (i,)), y, policy)
        if i == 2:
            policy = Int64(EVICT_FIRST)


@cute.jit
def launch_staged(x: cute.Tensor, y: cute.Tensor, n: Int32):
    staged(x, y, n).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def selected(x: cute.Tensor, y: cute.Tensor, n: Int32):
    """An atom out of an `if`: it has a policy on one of two paths."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    if n > 3:
        atom = atom.with_(cache_policy=Int64(EVICT_FIRST))
    fragment = cute.make_rmem_tensor((4,), Float32)
    cute.copy(atom, cute.local_tile(x, (4,), (n,)), fragment)
    cute.autovec_copy(fragment, cute.local_tile(y, (4,), (n,)))


@cute.jit
def launch_selected(x: cute.Tensor, y: cute.Tensor, n: Int32):
    selected(x, y, n).launch(grid=[1, 1, 1], block=[128, 1, 1])


def all_hinted(directory: Path) -> bool:
    """Whether the PTX in `directory` has loads, and each of them its policy."""
    found = loads(directory)
    return bool(found) and all("nc.L2::cache_hint" in load for load in found)


def test_without_the_option_the_policy_is_lost(tmp_path: Path):
    cute.compile(launch, *arguments(), options=f"--gpu-arch sm_90a --keep-ptx --dump-dir {tmp_path}")
    assert len(loads(tmp_path)) == 1 and not all_hinted(tmp_path)


def test_compile(options: str, tmp_path: Path):
    cute.compile(launch, *arguments(), options=options)
    assert loads(tmp_path) == [HINTED]


@pytest.mark.parametrize("host", [launch_staged, launch_selected])
def test_control_flow(host: Callable[..., Any], options: str, tmp_path: Path):
    cute.compile(host, *arguments(), Int32(1), options=options)
    assert all_hinted(tmp_path)


@pytest.mark.skipif(not hasattr(dsl_compiler, "FrontendNext"), reason="FrontendNext is new in 4.7")
@pytest.mark.parametrize("host", [launch_staged, launch_selected])
def test_frontend_next(host: Callable[..., Any], options: str, tmp_path: Path):
    if host is launch_selected and _dsl.version().startswith("4.7."):
        pytest.skip("FrontendNext of 4.7 forgets an atom that is assigned in an 'if'")
    cute.compile[dsl_compiler.FrontendNext](host, *arguments(), Int32(1), options=options)
    assert all_hinted(tmp_path)


def test_tvm_ffi(options: str, tmp_path: Path):
    pytest.importorskip("tvm_ffi", reason="needs the package apache-tvm-ffi")
    cute.compile(launch, *arguments(), options=f"{options} --enable-tvm-ffi")
    assert loads(tmp_path) == [HINTED]


@cute.jit
def device_function(x: Int64, y: Int64):
    """Takes plain numbers: the DSL exports no device functions of tensors."""
    layout = cute.make_layout(512)
    source, target = (cute.make_ptr(Float32, a, cute.AddressSpace.gmem, assumed_align=16) for a in (x, y))
    copy_vector(cute.make_tensor(source, layout), cute.make_tensor(target, layout), Int64(EVICT_FIRST))


def test_device_target(tmp_path: Path):
    target = (dsl_compiler.DeviceTarget, dsl_compiler.GPUArch("sm_90a"), dsl_compiler.DumpDir(str(tmp_path)))
    cute.compile[(*target, HonorCachePolicy)](device_function, Int64(0), Int64(0))
    assert loads(tmp_path) == [HINTED]


def test_precompiled_mlir(options: str):
    artifact = cute.compile.to_precompiled_mlir(launch, *arguments(), options=options)
    assert HINTED in str(artifact)


def run(program: str, directory: Path, **settings: str) -> None:
    """Run a Python program on `directory`, with `CUTE_DSL_*` settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUTE_DSL_")}
    environment |= {f"CUTE_DSL_{name}": value for name, value in {"ARCH": "sm_90a", **settings}.items()}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    # in a file: the DSL reads the source of the functions that it compiles
    script = directory / "program.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, script, directory], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


EXPORT = """
import cute_cache_policy, sys
from cutlass import cute
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.sass import global_accesses
from support.scale import arguments, launch

ours = cute.compile(launch, *arguments(), options="--honor-cache-policy")
ours.export_to_c(sys.argv[1], "ours", function_prefix="scale")
"""


def test_export_to_c(tmp_path: Path):
    """The cubin is in the object file, as an ELF file of its own: its SASS says what was exported."""
    run(EXPORT, tmp_path)
    cubin = (tmp_path / "ours.o").read_bytes().rpartition(b"\x7fELF")
    (load,) = (a for a in global_accesses(disassemble(cubin[1] + cubin[2]), Target(90)) if "LDG" in a.mnemonic)
    assert str(load) == f"LDG.E.128.CONSTANT policy={EVICT_FIRST:#x}"


@cute.experimental.kernel
def experimental_kernel(x: cute.Tensor, y: cute.Tensor):
    """In the second DSL object; its kernel op is `lir.func`."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    thread, _, _ = cute.arch.thread_idx()
    fragment = cute.make_rmem_tensor((4,), Float32)
    cute.copy(atom, cute.local_tile(x, (4,), (thread,)), fragment, cache_policy=Int64(EVICT_FIRST))
    cute.autovec_copy(fragment, cute.local_tile(y, (4,), (thread,)))


@cute.experimental.jit
def launch_experimental(x: cute.Tensor, y: cute.Tensor):
    experimental_kernel(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


@pytest.mark.parametrize("compile_", [cute.compile, cute.experimental.compile], ids=["cute", "experimental"])
def test_experimental(compile_: Callable[..., Any], options: str, tmp_path: Path):
    compile_(launch_experimental, *arguments(), options=options)
    assert loads(tmp_path) == [HINTED]


def test_hooks_of_others(options: str, tmp_path: Path):
    """They run before ours, see the copy as it was traced, and an error of theirs stays theirs."""
    seen: list[str] = []
    registered: list[str] = []
    CuTeDSL._get_dsl().register_trace_finalize_hook(lambda owner, module, name: registered.append(str(module)))
    hook = lambda owner, module, name: seen.append(str(module))  # noqa: E731
    cute.compile(launch, *arguments(), options=options, trace_finalize_hooks=hook)
    assert len(seen) == len(registered) == 1
    assert "cute.copy(" in seen[0] and HINTED not in seen[0]
    assert loads(tmp_path) == [HINTED]

    def broken(owner: Any, module: Any, name: str) -> None:
        raise ValueError("not ours")

    with pytest.raises(Exception, match="not ours"):
        cute.compile(launch, *arguments(), options=options, trace_finalize_hooks=broken)


def test_errors_are_reported_at_the_users_line():
    """And not inside this package, whose wrappers lie between the user's line and the DSL."""
    compile_ = cute.compile[dsl_compiler.DeviceTarget, HonorCachePolicy]
    line = 1 + sys._getframe().f_lineno
    with pytest.raises(Exception, match=f"test_compile_paths.py:{line + 1}") as raised:
        compile_(launch, *arguments())
    assert "cute_cache_policy" not in str(raised.value)


IMPLICIT_CALL = """
import os
import cute_cache_policy
from cutlass.cutlass_dsl import CuTeDSL
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.sass import global_accesses
from support.scale import HINTED, launch_pointers, pointers

hashes = []
original = CuTeDSL.get_module_hash

def get_module_hash(self, module, name):
    assert HINTED in str(module)
    hashes.append(original(self, module, name))
    return hashes[-1]

CuTeDSL.get_module_hash = get_module_hash
for _ in range(2):
    try:
        launch_pointers(*pointers())
    except Exception as failure:  # without a GPU, the launch of the compiled kernel fails
        assert "cuda" in str(failure).lower()
# PTX that is to be kept turns the cache off, and the hash with it
assert len(set(hashes)) == 1 or "CUTE_DSL_KEEP" in os.environ, hashes
"""


def test_implicit_call_hash(tmp_path: Path):
    """A call of a jit function traces every time. What keys the compile cache is the module after our passes."""
    run(IMPLICIT_CALL, tmp_path, COMPILER_OPT="honor-cache-policy")


def test_implicit_call(tmp_path: Path):
    run(IMPLICIT_CALL, tmp_path, COMPILER_OPT="honor-cache-policy", KEEP="ptx", DUMP_DIR=str(tmp_path))
    assert loads(tmp_path) == [HINTED]


JAX = """
import cute_cache_policy
import cuda.bindings.driver as cuda
import cutlass.jax
import jax
import sys
from cutlass import cute
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.sass import global_accesses
from support.scale import kernel

@cute.jit
def launch(stream: cuda.CUstream, x: cute.Tensor, y: cute.Tensor):
    kernel(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1], stream=stream)

def scale(x):
    options = f"--honor-cache-policy --keep-ptx --dump-dir {sys.argv[1]}"
    call = cutlass.jax.cutlass_call(launch, output_shape_dtype=x, use_static_tensors=True, compile_options=options)
    return call(x)

x = jax.ShapeDtypeStruct((512,), "float32")
lowered = jax.jit(scale).trace(x).lower(lowering_platforms=("cuda",))
assert "CuteDSL" in lowered.as_text()
"""


def test_jax(tmp_path: Path):
    """JAX compiles a kernel while it lowers the call; no GPU is needed for that."""
    pytest.importorskip("jax", reason="needs the package jax")
    run(JAX, tmp_path)
    assert loads(tmp_path) and set(loads(tmp_path)) == {HINTED}
