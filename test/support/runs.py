"""Running a cell of the coverage matrix on the GPU, on random data."""

from __future__ import annotations

import numpy as np

from .cells import SOURCE_VECTORS, THREADS, Cell
from .device import Array

__all__ = ["draw", "expected", "run"]

EVICT_FIRST = 0x12F0000000000000

#: What the target holds in front of a run, and how much more of it there is than the cell may write.
POISON, GUARD = 0xCB, 256


def draw(cell: Cell, seed: int) -> tuple[bytes, int]:
    """A random source for a cell, and the vector from which on it is predicated off, if it is."""
    random = np.random.default_rng(seed)
    highest = 2 if cell.type_name == "Boolean" else 256
    source = random.integers(0, highest, SOURCE_VECTORS * cell.bits // 8, dtype=np.uint8)
    return source.tobytes(), int(random.integers(1, cell.reach))


def run(cell: Cell, options: str, source: bytes, limit: int, slack: int = 0) -> bytes:
    """What a cell, compiled with `options`, leaves in the target.

    The source has the vectors that the cell may read, and `slack` more bytes.
    """
    size = cell.bits // 8
    readable = Array(np.frombuffer(source, np.uint8)[: size * (limit if cell.tail else cell.reach) + slack])
    target = Array(np.full(THREADS * cell.vectors * size + GUARD, POISON, np.uint8))
    cell.compile(options)(*cell.arguments(readable.address, target.address, EVICT_FIRST, limit))
    return target.numpy().tobytes()


def expected(cell: Cell, source: bytes, limit: int) -> bytes:
    """What `run` should return."""
    return cell.expected(source, limit) + bytes([POISON] * GUARD)
