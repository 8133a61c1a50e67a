"""Workloads 1 and 7: pure bandwidth, as a load-store loop and as an elementwise sum.

The loop is what `invariant` is for: a load that may overtake the stores in front of it keeps more bytes in flight,
which is all that counts when few threads run. The sum has one vector a thread and nothing to gain; it shows that
nothing is lost. Where there is nothing to protect, evict_first has only its price, however it is asked for: the rows
in which bandwidth is the limit ask for evict_normal.
"""

from __future__ import annotations

from collections.abc import Iterator

import cutlass
import torch
from cutlass import Int32, Int64, cute

from .competitors import DROP, NORMAL, WORDS, Case, Shape, kernels, load, place
from .triton_kernels import add_kernel, copy_kernel, triton_kernel


@cute.kernel
def copy_loop(
    x: cute.Pointer, y: cute.Pointer, tiles: Int32, drop: Int64, how: cutlass.Constexpr, c: cutlass.Constexpr
):
    tid, first, blocks = place()
    vectors = cute.make_layout((WORDS, tiles * c.threads * c.unroll))
    x, y = cute.make_tensor(x, vectors), cute.make_tensor(y, vectors)
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            cute.autovec_copy(load(how, x[None, at], drop), y[None, at])


@cute.kernel
def add(x: cute.Pointer, y: cute.Pointer, z: cute.Pointer, drop: Int64, how: cutlass.Constexpr, c: cutlass.Constexpr):
    tid, block, blocks = place()
    vectors = cute.make_layout((WORDS, blocks * c.threads))
    x, y, z = (cute.make_tensor(p, vectors) for p in (x, y, z))
    at = block * c.threads + tid
    a, b = load(how, x[None, at], drop), load(how, y[None, at], drop)
    a.store(a.load() + b.load())
    cute.autovec_copy(a, z[None, at])


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    yield _copy_case(multiprocessors, Shape(128, 1, 8), DROP, "low occupancy")
    yield _copy_case(multiprocessors, Shape(256, 8, 1), NORMAL, "high occupancy")
    yield _add_case(Shape(256, 8, 1))


def _copy_case(multiprocessors: int, c: Shape, policy: int, occupancy: str) -> Case:
    blocks = multiprocessors * c.per_sm
    tiles = (256 << 20) // (4 * WORDS * c.threads * c.unroll)
    x = torch.randint(-(1 << 31), 1 << 31, (tiles * c.threads * c.unroll * WORDS,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    case = Case("1 load-store loop", f"{occupancy}, {c}", 2 * x.nbytes, [y], lambda: [x])
    case.kernels = {
        **kernels(copy_loop, "load_store.cu", [x, y], [tiles], [policy], blocks, c),
        **triton_kernel(copy_kernel, blocks, [x, y, tiles], c.threads // 32, BLOCK=c.threads * WORDS, UNROLL=c.unroll),
    }
    return case


def _add_case(c: Shape) -> Case:
    x, y = (torch.randn(64 << 20, dtype=torch.float32, device="cuda") for _ in range(2))
    z = torch.empty_like(x)
    blocks = x.numel() // (c.threads * WORDS)
    case = Case("7 elementwise", f"z = x + y, {c.threads} threads", 3 * x.nbytes, [z], lambda: [x + y])
    case.kernels = {
        **kernels(add, "load_store.cu", [x, y, z], [], [NORMAL], blocks, c),
        **triton_kernel(add_kernel, blocks, [x, y, z], c.threads // 32, BLOCK=c.threads * WORDS),
    }
    return case
