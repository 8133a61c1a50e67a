"""`--infer-invariant-copy` in kernels that read what they write: what they compute, and which loads are non-coherent.

As a script it launches those kernels, for the tests that let Nsight Compute count their loads.
"""

from __future__ import annotations

from typing import Any

import cutlass
import numpy as np
import pytest
from cutlass import Float32, Int32, cute

import cute_cache_policy  # noqa: F401  registers the option
from support.device import Array
from support.ncu import Launch, profile

BLOCKS, THREADS, VECTOR = 64, 32, 4
SIZE = BLOCKS * THREADS * VECTOR


def index() -> Any:
    return cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]


@cute.kernel
def reload(data: cute.Tensor, x: cute.Tensor, out: cute.Tensor):
    """Every load of `data` but the first has to see what was stored in front of it."""
    mine, addend = (cute.local_tile(t, (VECTOR,), (index(),)) for t in (data, x))
    for _ in cutlass.range(3):
        mine.store(mine.load() + addend.load())
    cute.local_tile(out, (VECTOR,), (index(),)).store(mine.load())


@cute.kernel
def prefix(data: cute.Tensor, x: cute.Tensor, out: cute.Tensor):
    """A thread adds up its vector in place, element by element."""
    at = index() * VECTOR
    data[at] = data[at] + x[at]
    for i in cutlass.range(1, VECTOR, 1):
        data[at + i] = data[at + i - 1] + x[at + i]
        out[at + i] = data[at + i]


@cute.kernel
def neighbours(data: cute.Tensor, x: cute.Tensor, out: cute.Tensor):
    """Threads of a block read what others have stored in front of a barrier."""
    at = index() * VECTOR
    data[at] = x[at]
    cute.arch.sync_threads()
    other = (cute.arch.block_idx()[0] * THREADS + (cute.arch.thread_idx()[0] + Int32(1)) % THREADS) * VECTOR
    out[at] = data[other]


def after_reload(data: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = data + x + x + x
    return total, total


def after_prefix(data: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, total = x.reshape(-1, VECTOR), data.reshape(-1, VECTOR).copy()
    total[:, 0] += rows[:, 0]
    for i in range(1, VECTOR):
        total[:, i] = total[:, i - 1] + rows[:, i]
    out = total.copy()
    out[:, 0] = 0
    return total.ravel(), out.ravel()


def after_neighbours(data: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = x.reshape(BLOCKS, THREADS, VECTOR)[:, :, 0]
    changed, out = data.reshape(BLOCKS, THREADS, VECTOR).copy(), np.zeros((BLOCKS, THREADS, VECTOR), np.float32)
    changed[:, :, 0] = first
    out[:, :, 0] = np.roll(first, -1, axis=1)
    return changed.ravel(), out.ravel()


KERNELS = {reload: after_reload, prefix: after_prefix, neighbours: after_neighbours}


def check(kernel: Any) -> None:
    """Run a kernel, compiled with the option, on random numbers."""

    @cute.jit
    def launch(data: cute.Pointer, x: cute.Pointer, out: cute.Pointer):
        tensors = [cute.make_tensor(pointer, cute.make_layout(SIZE)) for pointer in (data, x, out)]
        kernel(*tensors).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])

    random = np.random.default_rng(0)
    data, x = (random.integers(0, 100, SIZE).astype(np.float32) for _ in range(2))
    arrays = [Array(values) for values in (data, x, np.zeros_like(x))]
    pointers = [array.pointer(Float32) for array in arrays]
    cute.compile(launch, *pointers, options="--infer-invariant-copy")(*pointers)
    want_data, want_out = KERNELS[kernel](data, x)
    assert np.array_equal(arrays[0].numpy(), want_data)
    assert np.array_equal(arrays[2].numpy(), want_out)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_that_read_what_they_write(kernel: Any) -> None:
    check(kernel)


@pytest.fixture(scope="module")
def launches() -> dict[Any, Launch]:
    """What was counted for each of KERNELS."""
    return dict(zip(KERNELS, profile(__file__, "|".join(kernel.__name__ for kernel in KERNELS)), strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_never_written_is_loaded_non_coherently(kernel: Any, launches: dict[Any, Launch]) -> None:
    # `x` is, `data` is not
    assert launches[kernel].non_coherent == {True, False}


if __name__ == "__main__":
    for kernel in KERNELS:
        check(kernel)
