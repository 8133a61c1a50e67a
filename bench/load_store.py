"""Workloads 1 and 7: pure bandwidth, as a load-store loop and as an elementwise sum.

The loop is what `invariant` is for: a load that may overtake the stores in front of it keeps more bytes in flight,
which is all that counts when few threads run. The sum has one vector a thread and nothing to gain; it shows that
nothing is lost. Where there is nothing to protect, evict_first has only its price, however it is asked for: the rows
in which bandwidth is the limit ask for evict_normal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cuda.bindings.driver as cuda_driver
import cutlass
import torch
from cutlass import Int32, Int64, cute

from .competitors import DROP, NORMAL, Case, Load, cuda_kernels, cute_kernels, load
from .triton_kernels import add_kernel, copy_kernel, triton_kernel

WORDS = 4  # 32-bit words in one 128-bit access


@dataclass(frozen=True)
class Loop:
    threads: int
    unroll: int


@cute.kernel
def copy_loop(
    x: cute.Pointer, y: cute.Pointer, tiles: Int32, drop: Int64, how: cutlass.Constexpr, c: cutlass.Constexpr
):
    tid, _, _ = cute.arch.thread_idx()
    first, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    vectors = cute.make_layout((WORDS, tiles * c.threads * c.unroll))
    x, y = cute.make_tensor(x, vectors), cute.make_tensor(y, vectors)
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            cute.autovec_copy(load(how, x[None, at], drop), y[None, at])


@cute.jit
def launch_copy_loop(
    x: cute.Pointer,
    y: cute.Pointer,
    tiles: Int32,
    drop: Int64,
    blocks: Int32,
    stream: cuda_driver.CUstream,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    copy_loop(x, y, tiles, drop, how, c).launch(grid=[blocks, 1, 1], block=[c.threads, 1, 1], stream=stream)


@cute.kernel
def add(x: cute.Pointer, y: cute.Pointer, z: cute.Pointer, drop: Int64, how: cutlass.Constexpr, c: cutlass.Constexpr):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    vectors = cute.make_layout((WORDS, blocks * c.threads))
    x, y, z = (cute.make_tensor(p, vectors) for p in (x, y, z))
    at = block * c.threads + tid
    a, b = load(how, x[None, at], drop), load(how, y[None, at], drop)
    a.store(a.load() + b.load())
    cute.autovec_copy(a, z[None, at])


@cute.jit
def launch_add(
    x: cute.Pointer,
    y: cute.Pointer,
    z: cute.Pointer,
    drop: Int64,
    blocks: Int32,
    stream: cuda_driver.CUstream,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    add(x, y, z, drop, how, c).launch(grid=[blocks, 1, 1], block=[c.threads, 1, 1], stream=stream)


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    for occupancy, threads, per_sm, policy in (("low", 128, 1, DROP), ("high", 256, 8, NORMAL)):
        yield _copy_case(
            multiprocessors * per_sm,
            Loop(threads, 8),
            policy,
            f"{occupancy} occupancy, {per_sm} x {threads} threads/SM",
        )
    yield _add_case(256)


def _copy_case(blocks: int, c: Loop, policy: int, shape: str) -> Case:
    tile = c.threads * c.unroll * WORDS
    tiles = (256 << 20) // 4 // tile
    x = torch.randint(-(1 << 31), 1 << 31, (tiles * tile,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    case = Case("1 load-store loop", shape, 2 * x.nbytes, [y], lambda: [x])
    case.kernels = {
        **cute_kernels(launch_copy_loop, [x, y], [tiles], [policy], blocks, c),
        **cuda_kernels(
            "load_store.cu",
            "copy_loop",
            {"THREADS": c.threads, "UNROLL": c.unroll},
            [x, y],
            [tiles],
            [policy],
            (blocks, c.threads),
        ),
        **triton_kernel(copy_kernel, blocks, [x, y, tiles], c.threads // 32, BLOCK=c.threads * WORDS, UNROLL=c.unroll),
    }
    return case


def _add_case(threads: int) -> Case:
    x, y = (torch.randn(64 << 20, dtype=torch.float32, device="cuda") for _ in range(2))
    z = torch.empty_like(x)
    blocks = x.numel() // (threads * WORDS)
    case = Case("7 elementwise", f"z = x + y, {threads} threads", 3 * x.nbytes, [z], lambda: [x + y])
    case.kernels = {
        **cute_kernels(launch_add, [x, y, z], [], [NORMAL], blocks, Loop(threads, 1)),
        **cuda_kernels(
            "load_store.cu", "add", {"THREADS": threads, "UNROLL": 1}, [x, y, z], [], [NORMAL], (blocks, threads)
        ),
        **triton_kernel(add_kernel, blocks, [x, y, z], threads // 32, BLOCK=threads * WORDS),
    }
    return case


__all__ = ["Load", "cases"]
