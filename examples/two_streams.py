"""One kernel, two policies: a stream that is read once makes room in L2 for a table that is read again and again.

Prints the accesses of global memory in the PTX of both spellings. `before` is what one writes without the package: the
policies are inline PTX, and the loads of the copies with a policy cannot be `invariant=True`.
"""

from __future__ import annotations

import sys
import tempfile

import cutlass
from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.nvgpu import CopyG2ROp
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy

ROWS, THREADS, VECTOR = 1024, 128, 4


def policy(priority: str) -> Int64:
    """What every user writes without the package."""
    text = f"createpolicy.fractional.L2::{priority}.b64 {{$w0}};"
    return cute.arch.inline_ptx(text, write_only_types=[Int64])


@cute.kernel
def before(stream: cute.Tensor, table: cute.Tensor, rows: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(CopyG2ROp(), Float32, num_bits_per_copy=128)
    a, b = (cute.make_rmem_tensor((VECTOR,), Float32) for _ in range(2))
    cute.copy(atom, cute.local_tile(stream, (VECTOR,), (thread,)), a, cache_policy=policy("evict_first"))
    cute.copy(atom, cute.local_tile(table, (VECTOR,), (rows[thread],)), b, cache_policy=policy("evict_last"))
    a.store(a.load() * b.load())
    cute.autovec_copy(a, cute.local_tile(out, (VECTOR,), (thread,)))


@cute.kernel
def after(stream: cute.Tensor, table: cute.Tensor, rows: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    a, b = (cute.make_rmem_tensor((VECTOR,), Float32) for _ in range(2))
    first, last = cute_cache_policy.evict_first(), cute_cache_policy.evict_last()
    cute.copy(atom, cute.local_tile(stream, (VECTOR,), (thread,)), a, cache_policy=first)
    cute.copy(atom, cute.local_tile(table, (VECTOR,), (rows[thread],)), b, cache_policy=last)
    a.store(a.load() * b.load())
    cute.autovec_copy(a, cute.local_tile(out, (VECTOR,), (thread,)))


@cute.jit
def launch(kernel: cutlass.Constexpr, stream: cute.Tensor, table: cute.Tensor, rows: cute.Tensor, out: cute.Tensor):
    kernel(stream, table, rows, out).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


def accesses(arch: str, kernel: object, options: str = "") -> list[str]:
    """The accesses of global memory, and what makes policies, in the PTX of a kernel."""
    stream, out = (make_fake_compact_tensor(Float32, (THREADS * VECTOR,), assumed_align=16) for _ in range(2))
    table = make_fake_compact_tensor(Float32, (ROWS * VECTOR,), assumed_align=16)
    rows = make_fake_compact_tensor(Int32, (THREADS,), assumed_align=4)
    with tempfile.TemporaryDirectory() as directory:
        keep = f"--gpu-arch {arch} --keep-ptx --dump-dir {directory} {options}"
        ptx = cute.compile(launch, kernel, stream, table, rows, out, options=keep).artifacts.PTX
    return [" ".join(line.split()) for line in ptx.splitlines() if "global" in line or "createpolicy" in line]


def main(arch: str = "sm_90a") -> None:
    print("before:", *accesses(arch, before), sep="\n    ")
    print("after:", *accesses(arch, after, "--honor-cache-policy"), sep="\n    ")


if __name__ == "__main__":
    main(*sys.argv[1:])
