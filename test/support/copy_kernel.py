"""The smallest kernel with an invariant copy that carries a cache policy, for tests of everything around the kernel."""

from __future__ import annotations

import re
import tempfile
from typing import Any

from cutlass import BFloat16, Int64, cute
from cutlass.cute.runtime import make_ptr

__all__ = ["arguments", "compile_to_ptx", "launch", "loads"]

VECTOR = 8


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((VECTOR,), BFloat16)
    cute.copy(atom, cute.local_tile(source, (VECTOR,), (thread,)), fragment, cache_policy=policy)
    cute.autovec_copy(fragment, cute.local_tile(target, (VECTOR,), (thread,)))


@cute.jit
def launch(source: cute.Pointer, target: cute.Pointer, policy: Int64):
    layout = cute.make_layout(32 * VECTOR)
    copy(cute.make_tensor(source, layout), cute.make_tensor(target, layout), policy).launch(
        grid=[1, 1, 1], block=[32, 1, 1]
    )


def arguments() -> tuple[Any, ...]:
    """Arguments of `launch`, good enough to compile it."""
    return (*(make_ptr(BFloat16, 0, cute.AddressSpace.gmem, assumed_align=16) for _ in range(2)), Int64(0))


def compile_to_ptx(options: str = "", compiler: Any = cute.compile) -> str:
    """The PTX of `launch` for sm_90a, compiled with `options` by `cute.compile` or a `cute.compile[...]`."""
    with tempfile.TemporaryDirectory() as directory:
        keep = f"--gpu-arch sm_90a --keep-ptx --dump-dir {directory}"
        return compiler(launch, *arguments(), options=f"{keep} {options}").artifacts.PTX


def loads(ptx: str) -> list[str]:
    """The mnemonics of the loads from global memory."""
    return re.findall(r"\bld\.global\S*", ptx)
