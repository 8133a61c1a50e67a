"""Workload 6: a matrix-vector product with bfloat16 and with 4-bit weights, one warp a row.

The weights are used once (evict_first), every row needs the whole vector (evict_last).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cutlass
import torch
from cutlass import Float32, Int32, Int64, cute

from .competitors import DROP, KEEP, Case, Shape, kernels, load, place, unpacked
from .triton_kernels import gemv_kernel, triton_kernel


@dataclass(frozen=True)
class Matrix(Shape):
    """A matrix with `columns` of weights of `bits` (4 or 16) bits."""

    columns: int
    bits: int

    @property
    def weights_per_vector(self) -> int:
        return 128 // self.bits


@cute.jit
def dot16(how: cutlass.Constexpr, weights: cute.Tensor, x: cute.Tensor, at: Int32, keep: Int64):
    """The product of eight bfloat16 weights in four words and elements 8 at ... of `x` (8, n)."""
    product = unpacked(weights) * unpacked(load(how, x[None, at], keep))
    return product.reduce(cute.ReductionOp.ADD, Float32(0.0), 0)


@cute.jit
def dot4(how: cutlass.Constexpr, weights: cute.Tensor, x: cute.Tensor, at: Int32, keep: Int64):
    """The product of 32 four-bit weights in four words, lowest nibble first and offset by 8, and elements 32 at ..."""
    total = Float32(0.0)
    for word in cutlass.range_constexpr(4):
        part = unpacked(load(how, x[None, at * 4 + word], keep))
        for nibble in cutlass.range_constexpr(8):
            w = ((weights[word] >> (4 * nibble)) & 15) - 8
            total += Float32(w) * part[nibble]
    return total


@cute.kernel
def gemv(
    weights: cute.Pointer,
    x: cute.Pointer,
    y: cute.Pointer,
    rows: Int32,
    drop: Int64,
    keep: Int64,
    how: cutlass.Constexpr,
    c: cutlass.Constexpr,
):
    tid, block, _ = place()
    row, lane = block * (c.threads // 32) + tid // 32, tid % 32
    vectors = cutlass.const_expr(c.columns // c.weights_per_vector)
    weights = cute.make_tensor(weights, cute.make_layout((4, vectors, rows)))
    x = cute.make_tensor(x, cute.make_layout((8, c.columns // 8)))
    total = Float32(0.0)
    for step in cutlass.range(vectors // (32 * c.unroll)):
        for i in cutlass.range_constexpr(c.unroll):
            at = (step * c.unroll + i) * 32 + lane
            w = load(how, weights[None, at, row], drop)
            dot = cutlass.const_expr(dot16 if c.bits == 16 else dot4)
            total += dot(how, w, x, at, keep)
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        cute.make_tensor(y, cute.make_layout(rows))[row] = total


def cases(multiprocessors: int) -> Iterator[Case]:
    """The rows of this family; one block does `threads / 32` rows of the matrix whatever the GPU."""
    yield gemv_case(Matrix(128, 8, 4, 8192, 16), 28672)
    yield gemv_case(Matrix(128, 8, 4, 8192, 4), 57344)


def gemv_case(c: Matrix, rows: int) -> Case:
    """One row of the benchmark: a matrix with so many rows."""
    words = torch.randint(-(1 << 31), 1 << 31, (rows, c.columns * c.bits // 32), dtype=torch.int32, device="cuda")
    if c.bits == 16:
        words = torch.randn((rows, c.columns), device="cuda").to(torch.bfloat16).view(torch.int32)
    x = torch.randn(c.columns, device="cuda").to(torch.bfloat16)
    y = torch.empty(rows, dtype=torch.float32, device="cuda")
    blocks = rows // (c.threads // 32)

    def expected() -> list[torch.Tensor]:
        if c.bits == 16:
            return [words.view(torch.bfloat16).double() @ x.double()]
        parts = [((words >> 4 * nibble) & 15).double() - 8 for nibble in range(8)]
        return [sum(part @ x.view(-1, 8)[:, nibble].double() for nibble, part in enumerate(parts))]  # pyright: ignore

    case = Case(
        "6 matrix-vector product",
        f"{rows} x {c.columns}, {c.bits}-bit weights",
        words.nbytes + x.nbytes + y.nbytes,
        [y],
        expected,
        tolerance=1e-5,
    )
    tensors = [words, x, y]
    case.kernels = {
        **kernels(gemv, "gemv.cu", tensors, [rows], [DROP, KEEP], blocks, c),
        **triton_kernel(gemv_kernel, rows, tensors, 4, COLUMNS=c.columns, BITS=c.bits, BLOCK=1024),
    }
    return case
