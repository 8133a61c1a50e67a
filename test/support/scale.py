"""One small kernel with one copy in scope, to be compiled in every way the DSL has.

Each thread loads four floats through an invariant atom with an `evict_first` policy and stores them elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_ptr

__all__ = ["EVICT_FIRST", "HINTED", "arguments", "copy_vector", "launch", "launch_pointers", "loads", "pointers"]

#: What `createpolicy.fractional.L2::evict_first.b64 p, 1.0` yields.
EVICT_FIRST = 0x12F0000000000000

#: The load that the copy becomes with the option on.
HINTED = "ld.global.nc.L2::cache_hint.v4.b32"


@cute.jit
def copy_vector(x: cute.Tensor, y: cute.Tensor, policy: Int64):
    """The one copy."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    thread, _, _ = cute.arch.thread_idx()
    fragment = cute.make_rmem_tensor((4,), Float32)
    cute.copy(atom, cute.local_tile(x, (4,), (thread,)), fragment, cache_policy=policy)
    cute.autovec_copy(fragment, cute.local_tile(y, (4,), (thread,)))


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    copy_vector(x, y, Int64(EVICT_FIRST))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    """A host function on tensors."""
    kernel(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.jit
def launch_pointers(x: cute.Pointer, y: cute.Pointer):
    """A host function on pointers, which can be called without a framework's tensors."""
    layout = cute.make_layout(512)
    kernel(cute.make_tensor(x, layout), cute.make_tensor(y, layout)).launch(grid=[1, 1, 1], block=[128, 1, 1])


def arguments() -> tuple[cute.Tensor, cute.Tensor]:
    """Arguments to compile `launch` for."""
    shape = (cute.sym_int(divisibility=4),)
    x, y = (make_fake_compact_tensor(Float32, shape, assumed_align=16) for _ in range(2))
    return x, y


def pointers() -> tuple[cute.Pointer, cute.Pointer]:
    """Arguments to call `launch_pointers` with; nothing is there to be read."""
    x, y = (make_ptr(Float32, 16, cute.AddressSpace.gmem, assumed_align=16) for _ in range(2))
    return x, y


def loads(directory: Path) -> list[str]:
    """The loads from global memory in all PTX files in `directory`."""
    return [load for path in directory.glob("*.ptx") for load in re.findall(r"ld\.global\S+", path.read_text())]
