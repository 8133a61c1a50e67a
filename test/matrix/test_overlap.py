"""Non-coherent loads overtake stores: in a loop that loads and stores by turns, ptxas puts the loads in front."""

from __future__ import annotations

from pathlib import Path

import cutlass
import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_ptr

import cute_cache_policy  # noqa: F401 - registers the options
from support.cubin import kernels

UNROLL = 4


@cute.kernel
def copy_kernel(invariant: cutlass.Constexpr, hinted: cutlass.Constexpr, x: cute.Pointer, y: cute.Pointer, p: Int64):
    tid, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=invariant)
    rows = cute.make_layout((4, 1024), stride=(1, 4))
    source, target = cute.make_tensor(x, rows), cute.make_tensor(y, rows)
    for i in cutlass.range(1024 // 128, unroll=UNROLL):  # pyright: ignore[reportCallIssue]
        fragment = cute.make_rmem_tensor((4,), Float32)
        row = i * 128 + tid
        if cutlass.const_expr(hinted):
            cute.copy(atom, source[None, row], fragment, cache_policy=p)
        else:
            cute.copy(atom, source[None, row], fragment)
        cute.autovec_copy(fragment, target[None, row])


@cute.jit
def launch(invariant: cutlass.Constexpr, hinted: cutlass.Constexpr, x: cute.Pointer, y: cute.Pointer, p: Int64):
    copy_kernel(invariant, hinted, x, y, p).launch(grid=[1, 1, 1], block=[128, 1, 1])


def accesses(tmp_path: Path, arch: str, invariant: bool, hinted: bool, options: str = "") -> str:
    """The loads and stores of the kernel in order: L for a load, S for a store."""
    pointers = [make_ptr(Float32, 0, cute.AddressSpace.gmem, assumed_align=16) for _ in range(2)]
    options += f" --gpu-arch {arch} --keep-cubin --dump-dir {tmp_path}"
    compiled = cute.compile(launch, invariant, hinted, *pointers, Int64(0), options=options)
    (kernel,) = kernels(compiled.__cubin__).values()
    return "".join({"LDG": "L", "STG": "S"}.get(opcode[:3], "") for opcode in kernel.opcodes)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_loads_stand_in_front_of_stores(tmp_path: Path, arch: str) -> None:
    ours = accesses(tmp_path, arch, invariant=True, hinted=True, options="--honor-cache-policy")
    assert "L" * UNROLL in ours
    assert ours == accesses(tmp_path, arch, invariant=True, hinted=False)  # the bare invariant load


def test_coherent_loads_stay_between_stores(tmp_path: Path) -> None:
    assert "LL" not in accesses(tmp_path, "sm_90a", invariant=False, hinted=True)
