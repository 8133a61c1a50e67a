"""Workloads 2 and 3: a stream beside a table that is read at random, as a reduction and with an output stream.

Every element of the stream holds four indices into the table. The stream is used once (evict_first) and should not
push the table (evict_last) out of the L2. Workload 3 stores one vector an element, so that loads also have stores to
overtake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import cuda.bindings.driver as cuda_driver
import cutlass
import torch
from cutlass import Int32, Int64, Uint32, cute

from .competitors import DROP, KEEP, Case, cuda_kernels, cute_kernels, load, store
from .triton_kernels import lookup_kernel, triton_kernel

WORDS = 4  # 32-bit words in one 128-bit access, and in one entry of the table


@dataclass(frozen=True)
class Shape:
    """`gathers` of the four indices of an element are followed; `unroll` elements a thread and loop iteration.

    `hinted` says whether stores have a policy too, evict_first.
    """

    threads: int
    per_sm: int
    unroll: int
    gathers: int
    writes: bool
    hinted: bool = True

    @property
    def stores(self) -> str:
        """What to add to a description of the shape."""
        return "" if self.hinted else ", plain stores"


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
    tid, _, _ = cute.arch.thread_idx()
    first, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    x = cute.make_tensor(x, cute.make_layout((WORDS, tiles * c.threads * c.unroll)))
    out = cute.make_tensor(out, cute.make_layout((WORDS, tiles * c.threads * c.unroll)))
    table = cute.make_tensor(table, cute.make_layout((WORDS, entries)))
    total = cute.make_rmem_tensor((WORDS,), Uint32)
    total.fill(0)
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            at = (tile * c.unroll + i) * c.threads + tid
            ids = load(how, x[None, at], drop)
            value = cute.make_rmem_tensor((WORDS,), Uint32)
            value.store(ids.load())
            for g in cutlass.range_constexpr(c.gathers):
                entry = load(how, table[None, Int32(ids[g])], keep)
                value.store(value.load() + entry.load())
            if cutlass.const_expr(c.writes):
                store(value, out[None, at], drop, c.hinted)
            else:
                total.store(total.load() + value.load())
    if cutlass.const_expr(not c.writes):
        cute.autovec_copy(total, out[None, first * c.threads + tid])


@cute.jit
def launch_lookup(
    x: cute.Pointer,
    table: cute.Pointer,
    out: cute.Pointer,
    tiles: Int32,
    entries: Int32,
    drop: Int64,
    keep: Int64,
    blocks: Int32,
    stream: cuda_driver.CUstream,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    lookup(x, table, out, tiles, entries, drop, keep, how, c).launch(
        grid=[blocks, 1, 1], block=[c.threads, 1, 1], stream=stream
    )


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    for megabytes in (16, 24, 32, 48):
        yield lookup_case(multiprocessors, megabytes, Shape(256, 4, 4, 1, writes=False))
    for megabytes in (16, 24):
        yield lookup_case(multiprocessors, megabytes, Shape(256, 4, 4, 1, writes=True))
        yield lookup_case(multiprocessors, megabytes, Shape(128, 2, 4, 4, writes=True))
        yield lookup_case(multiprocessors, megabytes, Shape(256, 2, 4, 1, writes=True, hinted=False))


def lookup_case(multiprocessors: int, megabytes: int, c: Shape, stream_bytes: int = 512 << 20) -> Case:
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

    gathers = "1 gather" if c.gathers == 1 else f"{c.gathers} gathers"
    case = Case(
        "3 stream + table + output" if c.writes else "2 stream + table",
        f"{megabytes} MB table, {gathers}, {c.per_sm} x {c.threads} threads/SM{c.stores}",
        x.nbytes + table.nbytes + out.nbytes,
        [out],
        expected,
    )
    defines = {key.upper(): int(value) for key, value in asdict(c).items()}
    tensors, integers, policies = [x, table, out], [tiles, entries], [DROP, KEEP]
    as_words = [t.view(torch.uint32) for t in tensors]
    case.kernels = {
        **cute_kernels(launch_lookup, as_words, integers, policies, blocks, c),
        **cuda_kernels("lookup.cu", "lookup", defines, tensors, integers, policies, (blocks, c.threads)),
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
