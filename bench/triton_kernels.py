"""The workloads in Triton, with its own eviction policies where it can express them.

Triton chooses the access width and the layout itself; the tiles are those of the other competitors. There are no twins
where Triton is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

__all__ = [
    "add_kernel",
    "copy_kernel",
    "gather_kernel",
    "gemv_kernel",
    "lookup_kernel",
    "rowwise_kernel",
    "triton_kernel",
]


def triton_kernel(
    kernel: Any, blocks: int, arguments: Sequence[Any], warps: int, **constants: Any
) -> dict[str, Callable[[], None]]:
    """The launch of a Triton kernel, by its name among the competitors."""
    if triton is None:
        return {}
    return {"Triton": lambda: kernel[(blocks,)](*arguments, **constants, num_warps=warps)}


def jit(function: Any) -> Any:
    return triton.jit(function) if triton is not None else function


@jit
def copy_kernel(x, y, tiles, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        for i in tl.static_range(UNROLL):
            at = (tile * UNROLL + i) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at, eviction_policy="evict_first"))


@jit
def add_kernel(x, y, z, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, eviction_policy="evict_first")
    tl.store(z + at, a + tl.load(y + at, eviction_policy="evict_first"))


@jit
def lookup_kernel(
    x,
    table,
    out,
    tiles,
    BLOCK: tl.constexpr,
    UNROLL: tl.constexpr,
    GATHERS: tl.constexpr,
    WRITES: tl.constexpr,
    STORE: tl.constexpr,
):
    thread, word = tl.arange(0, BLOCK)[:, None], tl.arange(0, 4)[None, :]
    total = tl.zeros((BLOCK, 4), tl.int32)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        for i in tl.static_range(UNROLL):
            at = (tile * UNROLL + i) * BLOCK + thread
            value = tl.load(x + at * 4 + word, eviction_policy="evict_first")
            for g in tl.static_range(GATHERS):
                index = tl.load(x + at * 4 + g, eviction_policy="evict_first")
                value += tl.load(table + index * 4 + word, eviction_policy="evict_last")
            if WRITES:
                tl.store(out + at * 4 + word, value, eviction_policy=STORE)
            else:
                total += value
    if not WRITES:
        tl.store(out + (tl.program_id(0) * BLOCK + thread) * 4 + word, total)


@jit
def gather_kernel(
    ids,
    pages,
    table,
    x,
    out,
    tiles,
    ROWS: tl.constexpr,
    UNROLL: tl.constexpr,
    DIM: tl.constexpr,
    RESIDUAL: tl.constexpr,
    BAG: tl.constexpr,
    PAGED: tl.constexpr,
    STORE: tl.constexpr,
):
    column = tl.arange(0, DIM)[None, :]
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        for i in tl.static_range(UNROLL):
            slot = (tile * UNROLL + i) * ROWS + tl.arange(0, ROWS)
            total = tl.zeros((ROWS, DIM), tl.float32)
            for b in tl.static_range(BAG):
                row = tl.load(ids + slot * BAG + b, eviction_policy="evict_first")
                if PAGED:
                    row = tl.load(pages + row, eviction_policy="evict_last")
                total += tl.load(table + row[:, None] * DIM + column, eviction_policy="evict_last").to(tl.float32)
            at = slot[:, None] * DIM + column
            if RESIDUAL:
                total += tl.load(x + at, eviction_policy="evict_first").to(tl.float32)
            tl.store(out + at, total.to(out.dtype.element_ty), eviction_policy=STORE)


@jit
def gemv_kernel(weights, x, y, COLUMNS: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    if BITS == 16:
        w16 = weights.to(tl.pointer_type(tl.bfloat16)) + row * COLUMNS
        for at in range(0, COLUMNS, BLOCK):
            at = at + tl.arange(0, BLOCK)
            w = tl.load(w16 + at, eviction_policy="evict_first").to(tl.float32)
            total += w * tl.load(x + at, eviction_policy="evict_last").to(tl.float32)
        tl.store(y + row, tl.sum(total))
    else:
        nibble = tl.arange(0, 8)[None, :]
        sums = tl.zeros((BLOCK // 8, 8), tl.float32)
        for at in range(0, COLUMNS, BLOCK):
            word = at // 8 + tl.arange(0, BLOCK // 8)[:, None]
            packed = tl.load(weights + row * (COLUMNS // 8) + word, eviction_policy="evict_first")
            w = ((packed >> (4 * nibble)) & 15) - 8
            sums += w.to(tl.float32) * tl.load(x + word * 8 + nibble, eviction_policy="evict_last").to(tl.float32)
        tl.store(y + row, tl.sum(tl.sum(sums, 1)))


@jit
def rowwise_kernel(
    x,
    weight,
    y,
    rows,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    SOFTMAX: tl.constexpr,
    FIRST: tl.constexpr,
    LAST: tl.constexpr,
):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        largest, total = float("-inf"), 0.0
        squares = tl.zeros((BLOCK,), tl.float32)
        value = squares
        for step in range(0, COLUMNS, BLOCK):
            at = step + tl.arange(0, BLOCK)
            value = tl.load(x + row * COLUMNS + at, eviction_policy=FIRST).to(tl.float32)
            if SOFTMAX:
                before = largest
                largest = tl.maximum(largest, tl.max(value))
                total = total * tl.exp(before - largest) + tl.sum(tl.exp(value - largest))
            else:
                squares += value * value
        scale = 1.0 / total if SOFTMAX else tl.rsqrt(tl.sum(squares) / COLUMNS + 1e-6)
        for step in range(0, COLUMNS, BLOCK):
            at = step + tl.arange(0, BLOCK)
            if BLOCK != COLUMNS:
                value = tl.load(x + row * COLUMNS + at, eviction_policy=LAST).to(tl.float32)
            if SOFTMAX:
                scaled = tl.exp(value - largest) * scale
            else:
                scaled = value * scale * tl.load(weight + at, eviction_policy="evict_last").to(tl.float32)
            tl.store(y + row * COLUMNS + at, scaled.to(tl.bfloat16), eviction_policy=LAST)
