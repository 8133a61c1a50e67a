"""Workload 5: embedding gather, `out[i] = table[ids[i]]`, with indices whose frequencies follow Zipf's law.

The list of indices and the output are used once (evict_first); the rows in demand should stay in the L2 (evict_last).
With a residual, `out[i] = table[ids[i]] + x[i]`, there is one more stream beside the table. A bag is the sum of several
rows, as where codes of a residual vector quantizer are decoded or features are hashed. A paged gather,
`out[i] = table[pages[ids[i]]]`, finds its rows through a second table, as caches of keys or of embeddings do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import methodcaller

import cutlass
import torch
from cutlass import Int32, Int64, cute

from .competitors import DROP, KEEP, VECTOR, Case, Shape, kernels, load, place, store, unpacked
from .triton_kernels import gather_kernel, triton_kernel


@dataclass(frozen=True)
class Gather(Shape):
    """`unroll` loads of indices a thread and iteration, each for `batch` outputs that are sums of `bag` rows.

    Attributes:
        dim, vectors: elements of a row, and 128-bit vectors of it that one thread loads.
        residual: add a stream to the sums.
        paged: an index says where the number of the row stands.
        wide: streams are float32, and only the table is bfloat16.
        hinted: stores have a policy too, evict_first.
    """

    dim: int
    vectors: int
    residual: bool = False
    bag: int = 1
    batch: int = 1
    paged: bool = False
    wide: bool = False
    hinted: bool = True

    def __str__(self) -> str:
        return f"{super().__str__()}{'' if self.hinted else ', plain stores'}"

    @property
    def lanes(self) -> int:
        """Threads that share a row."""
        return self.dim // VECTOR // self.vectors

    @property
    def groups(self) -> int:
        """Loads of indices by a block, all that are not for the same rows."""
        return self.threads // self.lanes

    @property
    def pieces(self) -> int:
        """128-bit vectors of a stream for one of the table."""
        return 2 if self.wide else 1


@cute.kernel
def gather(
    ids: cute.Pointer,
    pages: cute.Pointer,
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
    tid, first, blocks = place()
    groups = tiles * c.unroll * c.groups
    ids = cute.make_tensor(ids, cute.make_layout((c.batch * c.bag, groups)))
    pages = cute.make_tensor(pages, cute.make_layout((1, rows)))
    table = cute.make_tensor(table, cute.make_layout((VECTOR, c.lanes, c.vectors, rows)))
    stream = cute.make_layout((VECTOR // c.pieces, c.pieces, c.lanes, c.vectors, c.batch, groups))
    x, out = cute.make_tensor(x, stream), cute.make_tensor(out, stream)
    lane = tid % c.lanes
    # one sum of bfloat16 numbers needs no float32
    numbers = cutlass.const_expr(unpacked if c.bag > 1 or c.wide else methodcaller("load"))
    for tile in cutlass.range(first, tiles, blocks):
        for i in cutlass.range_constexpr(c.unroll):
            group = (tile * c.unroll + i) * c.groups + tid // c.lanes
            indices = load(how, ids[None, group], drop)
            for k in cutlass.range_constexpr(c.batch):
                bag = [indices[k * c.bag + b] for b in range(c.bag)]
                if cutlass.const_expr(c.paged):
                    bag = [load(how, pages[None, index], keep)[0] for index in bag]
                for v in cutlass.range_constexpr(c.vectors):
                    values = [numbers(load(how, table[None, lane, v, row], keep)) for row in bag]
                    total = cute.make_rmem_tensor((VECTOR // c.pieces, c.pieces), values[0].element_type)
                    cute.make_tensor(total.iterator, VECTOR).store(sum(values[1:], values[0]))
                    for p in cutlass.range_constexpr(c.pieces):
                        part = total[None, p].load()
                        if cutlass.const_expr(c.residual):
                            residual = load(how, x[None, p, lane, v, k, group], drop)
                            part = part + (residual.load() if cutlass.const_expr(c.wide) else numbers(residual))
                        result = cute.make_rmem_tensor((VECTOR // c.pieces,), out.element_type)
                        result.store(part.to(out.element_type))
                        store(result, out[None, p, lane, v, k, group], drop, c.hinted)


def zipf(count: int, rows: int, exponent: float) -> torch.Tensor:
    """`count` indices below `rows`; the k-th most frequent one has a frequency proportional to k**-exponent."""
    ranks = torch.arange(1, rows + 1, dtype=torch.float64, device="cuda")
    cumulative = torch.cumsum(ranks**-exponent, 0)
    draws = torch.rand(count, dtype=torch.float64, device="cuda") * cumulative[-1]
    frequent_first = torch.searchsorted(cumulative, draws).clamp_(max=rows - 1)
    return torch.randperm(rows, dtype=torch.int32, device="cuda")[frequent_first]


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    yield gather_case(multiprocessors, Gather(256, 8, 4, 128, 1), 2_000_000, 1.0)
    yield gather_case(multiprocessors, Gather(128, 2, 8, 128, 1), 2_000_000, 1.0)
    for threads, per_sm, unroll, dim, vectors in (
        (128, 2, 8, 512, 4),
        (128, 2, 8, 1024, 2),
        (256, 1, 8, 512, 2),
        (256, 2, 8, 256, 2),
    ):
        c = Gather(threads, per_sm, unroll, dim, vectors, residual=True)
        yield gather_case(multiprocessors, c, (24 << 20) // (2 * dim), 0.0)
    yield gather_case(multiprocessors, Gather(256, 2, 2, 256, 2, residual=True, bag=4), (32 << 20) // 512, 0.0)
    for megabytes, threads, per_sm, dim, vectors in (
        (8, 64, 1, 64, 2),
        (12, 64, 1, 128, 2),
        (12, 64, 2, 128, 1),
        (12, 128, 1, 64, 2),
        (12, 128, 1, 128, 1),
        (12, 128, 2, 128, 1),
    ):
        c = Gather(threads, per_sm, 2, dim, vectors, residual=True, wide=True)
        yield gather_case(multiprocessors, c, (megabytes << 20) // (2 * dim), 0.0, 1 << 30)
    for megabytes in (8, 16):
        c = Gather(128, 2, 2, 128, 2, batch=4, paged=True, hinted=False)
        yield gather_case(multiprocessors, c, (megabytes << 20) // 256, 0.0)


def gather_case(multiprocessors: int, c: Gather, rows: int, exponent: float, output_bytes: int = 512 << 20) -> Case:
    """One row: a table of so many rows, and as many gathers as fill the output."""
    blocks = multiprocessors * c.per_sm
    tiles = output_bytes // (16 * c.pieces * c.vectors * c.batch * c.threads * c.unroll)
    outputs = tiles * c.unroll * c.groups * c.batch
    ids = zipf(outputs * c.bag, rows, exponent).view(-1, c.bag)
    pages = torch.randperm(rows, dtype=torch.int32, device="cuda")
    table = torch.randn((rows, c.dim), device="cuda").to(torch.bfloat16)
    out = torch.empty((outputs, c.dim), dtype=torch.float32 if c.wide else torch.bfloat16, device="cuda")
    x = torch.randn(out.shape, device="cuda").to(out.dtype) if c.residual else out

    def expected() -> list[torch.Tensor]:
        bags = pages[ids] if c.paged else ids
        total = table[bags[:, 0]].float()
        for b in range(1, c.bag):
            total += table[bags[:, b]]
        return [(total + x if c.residual else total).to(out.dtype)]

    name = "5 bag of 4" if c.bag > 1 else "5 paged gather" if c.paged else "5 embedding gather"
    case = Case(
        f"{name}{' + residual' if c.residual else ''}",
        f"{rows / 1e3:g} k rows x {c.dim} bf16{' to f32' if c.wide else ''}, Zipf {exponent:g}, {c}",
        ids.nbytes
        + (pages.nbytes if c.paged else 0)
        + ids.unique().numel() * c.dim * 2
        + out.nbytes
        + c.residual * x.nbytes,
        [out],
        expected,
    )
    tensors = [ids, pages, table, x, out]
    shape = {
        "ROWS": c.groups * c.batch,
        "UNROLL": c.unroll,
        "DIM": c.dim,
        "RESIDUAL": c.residual,
        "BAG": c.bag,
        "PAGED": c.paged,
        "STORE": "evict_first" * c.hinted,
    }
    case.kernels = {
        **kernels(gather, "gather.cu", tensors, [tiles, rows], [DROP, KEEP], blocks, c),
        **triton_kernel(gather_kernel, blocks, [*tensors, tiles], c.threads // 32, **shape),
    }
    return case
