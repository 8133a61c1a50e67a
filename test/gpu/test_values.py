"""Every cell of the coverage matrix and random copies beside it: bit for bit what the non-invariant copy loads."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace

import pytest

import cute_cache_policy  # noqa: F401  registers the option
from support.cells import BITS, LAYOUTS, PITCH, SOURCE_VECTORS, THREADS, TYPES, Cell, Layout, variants
from support.runs import draw, expected, run

RANDOM_COPIES = 320


#: The whole matrix. No target lacks any of it: a 256-bit copy is two loads where there is none of 256 bits.
CELLS = [cell for type_name in TYPES for bits in BITS for cell in variants(type_name, bits)]


def check(cell: Cell, seed: int) -> None:
    """Run a cell with the option, and the same copy without `invariant` by the stock compiler, on random data."""
    source, limit = draw(cell, seed)
    got = run(cell, "--honor-cache-policy", source, limit)
    # the stock compiler (4.8.1) merges loads with gaps, and reads past the last: three of 16 bits become one of 128
    assert got == run(replace(cell, invariant=False), "", source, limit, slack=32)
    assert got == expected(cell, source, limit)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_a_cell_loads_what_the_non_invariant_copy_loads(cell: Cell) -> None:
    check(cell, seed=zlib.crc32(repr(cell).encode()))


# a fifth of the matrix, with every type, width and layout in it
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.tail][::5], ids=repr)
def test_an_inferred_cell_loads_what_it_loads_without_the_option(cell: Cell) -> None:
    source, limit = draw(cell, seed=zlib.crc32(repr(cell).encode()))
    got = run(replace(cell, invariant=False), "--infer-invariant-copy", source, limit)
    assert got == expected(cell, source, limit)


@dataclass(frozen=True, repr=False)
class RandomCell(Cell):
    """A cell with a layout of its own."""

    drawn: Layout = LAYOUTS["single"]

    @property
    def layout(self) -> Layout:
        return self.drawn


def random_layout(draw: random.Random) -> Layout:
    """A layout with one to three rest modes that reaches less than `SOURCE_VECTORS` vectors."""
    kind = draw.choice(["copy", "unroll", "atom", "split", "nested", "dynamic_shape"])
    while True:
        modes = 1 if kind == "atom" else draw.randint(1, 3)
        shape = tuple(draw.choice((2, 4)) if kind == "unroll" else draw.randint(1, 4) for _ in range(modes))
        stride = tuple(draw.choice([None, *range(1, 40)]) for _ in shape)
        thread_stride = draw.randint(1, 32)
        reach = (THREADS - 1) * thread_stride + sum((n - 1) * (d or PITCH) for n, d in zip(shape, stride))
        if reach < SOURCE_VECTORS:
            return Layout(
                shape,
                stride,
                thread_stride=(thread_stride,),
                split=kind == "split",
                nested=kind == "nested",
                call=kind if kind in ("unroll", "atom") else "copy",
                dynamic_shape=kind == "dynamic_shape",
            )


def random_cell(seed: int) -> RandomCell:
    """A copy that the DSL has, of any element type, width and layout, with and without a tail."""
    draw = random.Random(seed)
    while True:
        type_name, bits, tail = draw.choice(list(TYPES)), draw.choice(BITS), draw.random() < 0.5
        cell = RandomCell(type_name, bits, f"random{seed}", tail, drawn=random_layout(draw))
        if cell.exists:
            return cell


@pytest.mark.parametrize("seed", range(RANDOM_COPIES))
def test_a_random_copy_loads_what_the_non_invariant_copy_loads(seed: int) -> None:
    check(random_cell(seed), seed)
