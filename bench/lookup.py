"""Workloads 2 and 3: a stream beside a table that is read at random, as a reduction and with an output stream.

Every element of the stream holds four indices into the table. The stream is used once (evict_first) and should not
push the table (evict_last) out of the L2. Workload 3 stores one vector an element, so that loads also have stores to
overtake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cutlass
import torch
from cutlass import Int32, Int64, cute

from .competitors import DROP, KEEP, WORDS, Case, Shape, kernels, load, place, store
from .triton_kernels import lookup_kernel, triton_kernel


@dataclass(frozen=True)
class Lookup(Shape):
    """`gathers` of the four indices of an element are followed. `hinted`: stores have a policy too, evict_first."""

    gathers: int
    writes: bool
    hinted: bool = True

    def __str__(self) -> str:
        gathers = "1 gather" if self.gathers == 1 else f"{self.gathers} gathers"
        return f"{gathers}, {super().__str__()}{'' if self.hinted else ', plain stores'}"


@cute.kernel
def lookup(
    x: cute.Pointer,
    table: cute.Pointer,
    out: cute.Pointer,
    tiles: Int32,
    entries: Int32,
    drop: Int64,
    keep: Int64,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    tid, first, blocks = place()
    x = cute.make_tensor(x, cute.make_layout((WORDS, tiles * c.threads * c.unroll)))
    out = cute.make_tensor(out, cute.make_layout((WORDS, tiles * c.threads * c.unroll)))
    table = cute.make_tensor(table, cute.make_layout((WORDS, entries)))
    total = cute.make_rmem_tensor((WORDS,), Int32)
    total.fill(0)
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            ids = load(how, x[None, at], drop)
            value = cute.make_rmem_tensor((WORDS,), Int32)
            value.store(ids.load())
            for g in cutlass.range_constexpr(c.gathers):
                entry = load(how, table[None, ids[g]], keep)
                value.store(value.load() + entry.load())
            if cutlass.const_expr(c.writes):
                store(value, out[None, at], drop, c.hinted)
            else:
                total.store(total.load() + value.load())
    if cutlass.const_expr(not c.writes):
        cute.autovec_copy(total, out[None, first * c.threads + tid])


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    for megabytes in (16, 24, 32, 48):
        yield lookup_case(multiprocessors, megabytes, Lookup(256, 4, 4, 1, writes=False))
    for megabytes in (16, 24):
        yield lookup_case(multiprocessors, megabytes, Lookup(256, 4, 4, 1, writes=True))
        yield lookup_case(multiprocessors, megabytes, Lookup(128, 2, 4, 4, writes=True))
        yield lookup_case(multiprocessors, megabytes, Lookup(256, 2, 2, 1, writes=True, hinted=False))


def lookup_case(multiprocessors: int, megabytes: int, c: Lookup, stream_bytes: int = 512 << 20) -> Case:
    """One row: a table of so many megabytes beside a stream."""
    blocks = multiprocessors * c.per_sm
    tile = c.threads * c.unroll
    tiles = stream_bytes // (16 * tile)
    entries = (megabytes << 20) // 16
    x = torch.randint(0, entries, (tiles * tile, WORDS), dtype=torch.int32, device="cuda")
    table = torch.randint(-(1 << 31), 1 << 31, (entries, WORDS), dtype=torch.int32, device="cuda")
    out = torch.empty((tiles * tile if c.writes else blocks * c.threads, WORDS), dtype=torch.int32, device="cuda")

    def expected() -> list[torch.Tensor]:
        value = x.clone()
        for g in range(c.gathers):
            value += table[x[:, g]]
        if c.writes:
            return [value]
        # thread t of block b owns elements t, t + threads, ... of the tiles b, b + blocks, ...
        per_tile = value.view(tiles, c.unroll, c.threads, WORDS).sum(1, dtype=torch.int32)
        total = torch.zeros((blocks, c.threads, WORDS), dtype=torch.int32, device="cuda")
        total.index_add_(0, torch.arange(tiles, device="cuda") % blocks, per_tile)
        return [total.view(-1, WORDS)]

    case = Case(
        "3 stream + table + output" if c.writes else "2 stream + table",
        f"{megabytes} MB table, {c}",
        x.nbytes + table.nbytes + out.nbytes,
        [out],
        expected,
    )
    tensors = [x, table, out]
    case.kernels = {
        **kernels(lookup, "lookup.cu", tensors, [tiles, entries], [DROP, KEEP], blocks, c),
        **triton_kernel(
            lookup_kernel,
            blocks,
            [*tensors, tiles],
            c.threads // 32,
            BLOCK=c.threads,
            UNROLL=c.unroll,
            GATHERS=c.gathers,
            WRITES=c.writes,
            STORE="evict_first" * c.hinted,
        ),
    }
    return case
