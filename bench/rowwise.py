"""Workload 4: rmsnorm and softmax over the rows of a bfloat16 matrix, each row read once and read twice.

Read once: a warp holds its row in registers. Read twice: a block reads a row too long for its registers for the
statistics, and again for the output; the first reading should keep it in the L2 (evict_last), the second is its last
use (evict_first). Rows in flight that do not fit the L2 together are kept in part, by a policy for a fraction of the
lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cutlass
import torch
from cutlass import BFloat16, Float32, Int32, Int64, cute

from .competitors import DROP, KEEP, NORMAL, VECTOR, Case, Shape, keep_fraction, kernels, load, place, store, unpacked
from .triton_kernels import rowwise_kernel, triton_kernel

LOG2E = 1.4426950408889634
EPSILON = 1e-6


@dataclass(frozen=True)
class Rows(Shape):
    """Rows of `columns`, read `once` by a warp, or twice by a block."""

    columns: int
    softmax: bool
    once: bool

    @property
    def vectors(self) -> int:
        return self.columns // VECTOR


@cute.jit
def views(x: cute.Pointer, weight: cute.Pointer, y: cute.Pointer, rows: Int32, columns: cutlass.Constexpr):
    """The two matrices as (elements of a vector, vectors, rows), and the row of weights."""
    row = cutlass.const_expr((VECTOR, columns // VECTOR))
    matrix = cute.make_layout((*row, rows))
    return cute.make_tensor(x, matrix), cute.make_tensor(weight, cute.make_layout(row)), cute.make_tensor(y, matrix)


@cute.jit
def scale_of(values: cute.Tensor, columns: cutlass.Constexpr, softmax: cutlass.Constexpr):
    """By what to multiply the values of a row that a warp holds; for softmax, they become their powers first."""
    if cutlass.const_expr(softmax):
        largest = values.load().reduce(cute.ReductionOp.MAX, -Float32.inf, 0)
        largest = cute.arch.warp_reduction_max(largest) * LOG2E
        values.store(cute.math.exp2(values.load() * LOG2E - largest, fastmath=True))
        return 1.0 / cute.arch.warp_reduction_sum(values.load().reduce(cute.ReductionOp.ADD, Float32(0.0), 0))
    squares = (values.load() * values.load()).reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
    return cute.math.rsqrt(cute.arch.warp_reduction_sum(squares) / columns + EPSILON, fastmath=True)


@cute.kernel
def read_once(
    x: cute.Pointer,
    weight: cute.Pointer,
    y: cute.Pointer,
    rows: Int32,
    drop: Int64,
    keep: Int64,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    tid, first, blocks = place()
    x, weight, y = views(x, weight, y, rows, c.columns)
    warps = cutlass.const_expr(c.threads // 32)
    lane = tid % 32
    for tile in cutlass.range(first, rows // (warps * c.unroll), blocks):
        for i in cutlass.range_constexpr(c.unroll):
            row = (tile * c.unroll + i) * warps + tid // 32
            values = cute.make_rmem_tensor((VECTOR, c.vectors // 32), Float32)
            for v in cutlass.range_constexpr(c.vectors // 32):
                values[None, v].store(unpacked(load(how, x[None, v * 32 + lane, row], drop)))
            scale = scale_of(values, c.columns, c.softmax)
            for v in cutlass.range_constexpr(c.vectors // 32):
                result = cute.make_rmem_tensor((VECTOR,), BFloat16)
                scaled = values[None, v].load() * scale
                if cutlass.const_expr(not c.softmax):
                    scaled = scaled * unpacked(load(how, weight[None, v * 32 + lane], keep))
                result.store(scaled.to(BFloat16))
                store(result, y[None, v * 32 + lane, row], drop)


@cute.jit
def lanes_combine(largest: Float32, total: Float32, lanes: cutlass.Constexpr, softmax: cutlass.Constexpr):
    """The sum over so many lanes; for softmax with the largest value, by which each lane's sum is scaled."""
    if cutlass.const_expr(softmax):
        own = largest
        largest = cute.arch.warp_reduction_max(own, threads_in_group=lanes)
        total = total * cute.math.exp2(own - largest, fastmath=True)
    return largest, cute.arch.warp_reduction_sum(total, threads_in_group=lanes)


@cute.jit
def block_combine(scratch: cute.Tensor, tid: Int32, largest: Float32, total: Float32, softmax: cutlass.Constexpr):
    """The same over the block, in two steps: what the warps have found is combined by each of them."""
    warps = cutlass.const_expr(cute.size(scratch, mode=[1]))
    largest, total = lanes_combine(largest, total, 32, softmax)
    cute.arch.sync_threads()
    if tid % 32 == 0:
        scratch[0, tid // 32], scratch[1, tid // 32] = largest, total
    cute.arch.sync_threads()
    return lanes_combine(scratch[0, tid % warps], scratch[1, tid % warps], warps, softmax)


@cute.kernel
def read_twice(
    x: cute.Pointer,
    weight: cute.Pointer,
    y: cute.Pointer,
    rows: Int32,
    drop: Int64,
    keep: Int64,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    tid, first, blocks = place()
    x, weight, y = views(x, weight, y, rows, c.columns)
    scratch = cutlass.utils.SmemAllocator().allocate_tensor(Float32, cute.make_layout((2, c.threads // 32)))
    steps = cutlass.const_expr(c.vectors // (c.threads * c.unroll))
    for row in cutlass.range(first, rows, blocks):
        largest, total = -Float32.inf, Float32(0.0)
        for step in cutlass.range(steps):
            for i in cutlass.range_constexpr(c.unroll):
                value = unpacked(load(how, x[None, (step * c.unroll + i) * c.threads + tid, row], keep))
                if cutlass.const_expr(c.softmax):
                    value = value * LOG2E
                    before = largest
                    largest = cutlass.max(largest, value.reduce(cute.ReductionOp.MAX, -Float32.inf, 0))
                    powers = cute.math.exp2(value - largest, fastmath=True)
                    total = total * cute.math.exp2(before - largest, fastmath=True)
                    total += powers.reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
                else:
                    total += (value * value).reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
        largest, total = block_combine(scratch, tid, largest, total, c.softmax)
        if cutlass.const_expr(c.softmax):
            scale = 1.0 / total
        else:
            scale = cute.math.rsqrt(total / c.columns + EPSILON, fastmath=True)
        for step in cutlass.range(steps):
            for i in cutlass.range_constexpr(c.unroll):
                at = (step * c.unroll + i) * c.threads + tid
                value = unpacked(load(how, x[None, at, row], drop))
                if cutlass.const_expr(c.softmax):
                    scaled = cute.math.exp2(value * LOG2E - largest, fastmath=True) * scale
                else:
                    scaled = value * scale * unpacked(load(how, weight[None, at], keep))
                result = cute.make_rmem_tensor((VECTOR,), BFloat16)
                result.store(scaled.to(BFloat16))
                store(result, y[None, at, row], drop)


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family on a GPU with so many multiprocessors."""
    for softmax, shapes in (
        (False, ((512, 16, 65536), (1024, 4, 131072))),
        (True, ((1024, 4, 65536), (1024, 8, 131072))),
    ):
        yield rowwise_case(multiprocessors, Rows(128, 5, 1, 1024, softmax, once=True))
        for threads, unroll, columns in shapes:
            yield rowwise_case(multiprocessors, Rows(threads, 1, unroll, columns, softmax, once=False))


def normalized(x: torch.Tensor, weight: torch.Tensor, softmax: bool) -> torch.Tensor:
    """What rmsnorm, or softmax, makes of the rows of a bfloat16 matrix."""
    if softmax:
        return torch.cat([part.float().softmax(-1).to(torch.bfloat16) for part in x.split(1024)])
    parts = (part.float() for part in x.split(1024))
    scaled = (p * (p.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * weight.float() for p in parts)
    return torch.cat([part.to(torch.bfloat16) for part in scaled])


def rowwise_case(multiprocessors: int, c: Rows, sixteenths: int = 16, size: int = 512 << 20) -> Case:
    """One row of the benchmark; a first reading keeps so many sixteenths of the lines."""
    blocks = multiprocessors * c.per_sm
    # every block, or every warp of it, gets equally many rows
    batch = blocks * (c.threads // 32 * c.unroll if c.once else 1)
    rows = max(1, size // (2 * c.columns * batch)) * batch
    x = torch.randn((rows, c.columns), device="cuda").to(torch.bfloat16)
    weight = torch.randn(c.columns, device="cuda").to(torch.bfloat16)
    y = torch.empty_like(x)

    name = "softmax" if c.softmax else "rmsnorm"
    case = Case(
        f"4 {name}, rows read {'once' if c.once else 'twice'}",
        f"{rows} x {c.columns}, {c}",
        x.nbytes + y.nbytes + (0 if c.softmax else weight.nbytes),
        [y],
        lambda: [normalized(x, weight, c.softmax)],
        tolerance=4e-3,
    )
    tensors, policies = [x, weight, y], [NORMAL, KEEP] if c.once else [DROP, keep_fraction(sixteenths)]
    case.kernels = {
        **kernels(read_once if c.once else read_twice, "rowwise.cu", tensors, [rows], policies, blocks, c),
        **triton_kernel(
            rowwise_kernel,
            multiprocessors * (24 if c.once else 1),
            [*tensors, rows],
            1 if c.once else 32,
            COLUMNS=c.columns,
            BLOCK=c.columns if c.once else 32768 if c.softmax else 16384,
            SOFTMAX=c.softmax,
            FIRST="" if c.once else "evict_last",
            LAST="" if c.once else "evict_first",
        ),
    }
    return case
