"""Every cell of the coverage matrix and random copies beside it: bit for bit what the non-invariant copy loads."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace
from typing import Any

import pytest

import cute_cache_policy  # noqa: F401  registers the option
from support.cells import BITS, LAYOUTS, PITCH, SOURCE_VECTORS, THREADS, TYPES, Cell, Layout

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

EVICT_FIRST = 0x12F0000000000000
POISON, GUARD = 0xCB, 256
RANDOM_COPIES = 320


def cells() -> list[Cell]:
    """The whole matrix. No target lacks any of it: a 256-bit copy is two loads where there is none of 256 bits."""
    every = (
        Cell(t, bits, layout, tail) for t in TYPES for bits in BITS for layout in LAYOUTS for tail in (False, True)
    )
    return [cell for cell in every if cell.exists]


def run(cell: Cell, options: str, source: Any, limit: int) -> Any:
    """What a cell leaves in a poisoned buffer that is longer than its output."""
    target = torch.full((THREADS * cell.vectors * cell.bits // 8 + GUARD,), POISON, dtype=torch.uint8, device="cuda")
    cell.compile(options)(*cell.arguments(source.data_ptr(), target.data_ptr(), EVICT_FIRST, limit))
    torch.cuda.synchronize()
    return target.cpu()


def check(cell: Cell, seed: int) -> None:
    """Run a cell with the option, and the same copy without `invariant` by the stock compiler, on random data."""
    generator = torch.Generator().manual_seed(seed)
    highest = 2 if cell.type_name == "Boolean" else 256
    source = torch.randint(0, highest, (SOURCE_VECTORS * cell.bits // 8,), dtype=torch.uint8, generator=generator)
    limit = int(torch.randint(1, SOURCE_VECTORS, (1,), generator=generator))
    on_gpu = source.cuda()
    got = run(cell, "--honor-cache-policy", on_gpu, limit)
    assert torch.equal(got, run(replace(cell, invariant=False), "", on_gpu, limit))
    expected = cell.expected(source.numpy().tobytes(), limit)
    assert got.numpy().tobytes() == expected + bytes([POISON] * GUARD)


@pytest.mark.parametrize("cell", cells(), ids=repr)
def test_a_cell_loads_what_the_non_invariant_copy_loads(cell: Cell) -> None:
    check(cell, seed=zlib.crc32(repr(cell).encode()))


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
