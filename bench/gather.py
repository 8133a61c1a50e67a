"""Workload 5: embedding gather, `out[i] = table[ids[i]]`, with indices whose frequencies follow Zipf's law.

The list of indices and the output are used once (evict_first); the rows in demand should stay in the L2 (evict_last).
With a residual, `out[i] = table[ids[i]] + x[i]`, there is one more stream beside the table. A bag is the sum of several
rows, as where codes of a residual vector quantizer are decoded or features are hashed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import cuda.bindings.driver as cuda_driver
import cutlass
import torch
from cutlass import BFloat16, Float32, Int32, Int64, cute

from .competitors import DROP, KEEP, Case, cuda_kernels, cute_kernels, load, store
from .triton_kernels import gather_kernel, triton_kernel

VECTOR = 8  # bfloat16 elements in one 128-bit access


@dataclass(frozen=True)
class Shape:
    """Rows of `dim` elements, `vectors` a thread; `unroll` sums of `bag` (1, 2, 4) rows a thread and iteration.

    `hinted` says whether stores have a policy too, evict_first.
    """

    threads: int
    per_sm: int
    unroll: int
    dim: int
    vectors: int = 1
    residual: bool = False
    bag: int = 1
    hinted: bool = True

    @property
    def lanes(self) -> int:
        """Threads that share a row."""
        return self.dim // VECTOR // self.vectors

    @property
    def stores(self) -> str:
        """What to add to a description of the shape."""
        return "" if self.hinted else ", plain stores"

    @property
    def rows_per_block(self) -> int:
        return self.threads // self.lanes


@cute.kernel
def gather(
    ids: cute.Pointer,
    table: cute.Pointer,
    x: cute.Pointer,
    out: cute.Pointer,
    tiles: Int32,
    rows: Int32,
    drop: Int64,
    keep: Int64,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    tid, _, _ = cute.arch.thread_idx()
    first, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    slots = tiles * c.unroll * c.rows_per_block
    ids = cute.make_tensor(ids, cute.make_layout((c.bag, slots)))
    table = cute.make_tensor(table, cute.make_layout((VECTOR, c.lanes, c.vectors, rows)))
    x = cute.make_tensor(x, cute.make_layout((VECTOR, c.lanes, c.vectors, slots)))
    out = cute.make_tensor(out, cute.make_layout((VECTOR, c.lanes, c.vectors, slots)))
    lane = tid % c.lanes
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            slot = (tile * c.unroll + i) * c.rows_per_block + tid // c.lanes
            rows_of_slot = load(how, ids[None, slot], drop)
            for v in cutlass.range_constexpr(c.vectors):
                value = load(how, table[None, lane, v, rows_of_slot[0]], keep)
                addends = [load(how, table[None, lane, v, rows_of_slot[b]], keep) for b in range(1, c.bag)]
                if cutlass.const_expr(c.residual):
                    addends.append(load(how, x[None, lane, v, slot], drop))
                if cutlass.const_expr(len(addends) > 0):
                    total = value.load().to(Float32)
                    for addend in addends:
                        total = total + addend.load().to(Float32)
                    value.store(total.to(BFloat16))
                store(value, out[None, lane, v, slot], drop, c.hinted)


@cute.jit
def launch_gather(
    ids: cute.Pointer,
    table: cute.Pointer,
    x: cute.Pointer,
    out: cute.Pointer,
    tiles: Int32,
    rows: Int32,
    drop: Int64,
    keep: Int64,
    blocks: Int32,
    stream: cuda_driver.CUstream,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    gather(ids, table, x, out, tiles, rows, drop, keep, how, c).launch(
        grid=[blocks, 1, 1], block=[c.threads, 1, 1], stream=stream
    )


def zipf(count: int, rows: int, exponent: float) -> torch.Tensor:
    """`count` indices below `rows`; the k-th most frequent one has a frequency proportional to k**-exponent."""
    ranks = torch.arange(1, rows + 1, dtype=torch.float64, device="cuda")
    cumulative = torch.cumsum(ranks**-exponent, 0)
    draws = torch.rand(count, dtype=torch.float64, device="cuda") * cumulative[-1]
    frequent_first = torch.searchsorted(cumulative, draws).clamp_(max=rows - 1)
    return torch.randperm(rows, dtype=torch.int32, device="cuda")[frequent_first]


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    yield gather_case(multiprocessors, Shape(256, 8, 4, 128), 2_000_000, 1.0)
    yield gather_case(multiprocessors, Shape(128, 2, 8, 128), 2_000_000, 1.0)
    for hinted in (True, False):
        for threads, per_sm, unroll, dim, vectors in (
            (128, 2, 8, 512, 4),
            (128, 2, 8, 1024, 2),
            (256, 1, 8, 512, 2),
            (256, 2, 8, 256, 2),
        ):
            c = Shape(threads, per_sm, unroll, dim, vectors, residual=True, hinted=hinted)
            yield gather_case(multiprocessors, c, (24 << 20) // (2 * dim), 0.0)
    yield gather_case(multiprocessors, Shape(256, 2, 2, 256, 2, residual=True, bag=4), (32 << 20) // 512, 0.0)


def gather_case(multiprocessors: int, c: Shape, rows: int, exponent: float, output_bytes: int = 512 << 20) -> Case:
    """One row: a table of so many rows, and as many gathers as fill the output."""
    blocks = multiprocessors * c.per_sm
    tile = c.unroll * c.rows_per_block
    tiles = output_bytes // (c.dim * 2) // tile
    ids = zipf(tiles * tile * c.bag, rows, exponent).view(-1, c.bag)
    table = torch.randn((rows, c.dim), device="cuda").to(torch.bfloat16)
    out = torch.empty((tiles * tile, c.dim), dtype=torch.bfloat16, device="cuda")
    x = torch.randn(out.shape, device="cuda").to(torch.bfloat16) if c.residual else out
    touched = ids.unique().numel()

    def expected() -> list[torch.Tensor]:
        if c.bag == 1 and not c.residual:
            return [table[ids[:, 0]]]
        total = table[ids[:, 0]].float()
        for b in range(1, c.bag):
            total += table[ids[:, b]]
        return [(total + x if c.residual else total).to(torch.bfloat16)]

    case = Case(
        f"5 {'bag of ' + str(c.bag) if c.bag > 1 else 'embedding gather'}{' + residual' if c.residual else ''}",
        f"{rows / 1e3:g} k rows x {c.dim} bf16, Zipf {exponent:g}, {c.per_sm} x {c.threads} threads/SM{c.stores}",
        ids.nbytes + touched * c.dim * 2 + out.nbytes + c.residual * x.nbytes,
        [out],
        expected,
    )
    defines = {key.upper(): int(value) for key, value in asdict(c).items()}
    tensors, integers, policies = [ids, table, x, out], [tiles, rows], [DROP, KEEP]
    shape = {
        "ROWS": c.rows_per_block,
        "UNROLL": c.unroll,
        "DIM": c.dim,
        "RESIDUAL": c.residual,
        "BAG": c.bag,
        "STORE": "evict_first" * c.hinted,
    }
    case.kernels = {
        **cute_kernels(launch_gather, tensors, integers, policies, blocks, c),
        **cuda_kernels("gather.cu", "gather", defines, tensors, integers, policies, (blocks, c.threads)),
        **triton_kernel(gather_kernel, blocks, [*tensors, tiles], c.threads // 32, **shape),
    }
    return case
