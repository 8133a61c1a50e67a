"""`--infer-invariant-copy` changes no value: not in the coverage matrix, not in kernels that read what they write."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import cutlass
import pytest
from cutlass import Float32, Int32, cute
from cutlass.cute.runtime import from_dlpack

import cute_cache_policy  # noqa: F401  registers the option
from support.cells import BITS, LAYOUTS, SOURCE_VECTORS, THREADS, TYPES, Cell

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

EVICT_FIRST = 0x12F0000000000000
POISON, GUARD = 0xCB, 256


def cells() -> list[Cell]:
    """A fifth of the coverage matrix, with every type, width and layout in it."""
    every = (Cell(t, bits, layout, True, False) for t in TYPES for bits in BITS for layout in LAYOUTS)
    return [cell for cell in every if cell.exists][::5]


@pytest.mark.parametrize("cell", cells(), ids=repr)
def test_a_cell_loads_what_it_loads_without_the_option(cell: Cell) -> None:
    generator = torch.Generator().manual_seed(zlib.crc32(repr(cell).encode()))
    highest = 2 if cell.type_name == "Boolean" else 256
    source = torch.randint(0, highest, (SOURCE_VECTORS * cell.bits // 8,), dtype=torch.uint8, generator=generator)
    limit = int(torch.randint(1, SOURCE_VECTORS, (1,), generator=generator))
    on_gpu = source.cuda()
    target = torch.full((THREADS * cell.vectors * cell.bits // 8 + GUARD,), POISON, dtype=torch.uint8, device="cuda")
    compiled = replace(cell, invariant=False).compile("--infer-invariant-copy")
    compiled(*cell.arguments(on_gpu.data_ptr(), target.data_ptr(), EVICT_FIRST, limit))
    torch.cuda.synchronize()
    assert target.cpu().numpy().tobytes() == cell.expected(source.numpy().tobytes(), limit) + bytes([POISON] * GUARD)


BLOCKS, VECTOR = 64, 4
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


def expected_reload(data: Any, x: Any) -> tuple[Any, Any]:
    total = data + x + x + x
    return total, total


def expected_prefix(data: Any, x: Any) -> tuple[Any, Any]:
    rows, total = x.view(-1, VECTOR).clone(), data.clone().view(-1, VECTOR)
    total[:, 0] += rows[:, 0]
    for i in range(1, VECTOR):
        total[:, i] = total[:, i - 1] + rows[:, i]
    out = total.clone()
    out[:, 0] = 0
    return total.flatten(), out.flatten()


def expected_neighbours(data: Any, x: Any) -> tuple[Any, Any]:
    first = x.view(BLOCKS, THREADS, VECTOR)[:, :, 0]
    changed, out = data.clone().view(BLOCKS, THREADS, VECTOR), torch.zeros_like(data).view(BLOCKS, THREADS, VECTOR)
    changed[:, :, 0] = first
    out[:, :, 0] = first.roll(-1, dims=1)
    return changed.flatten(), out.flatten()


KERNELS = [(reload, expected_reload), (prefix, expected_prefix), (neighbours, expected_neighbours)]


@pytest.mark.parametrize(("kernel", "expected"), KERNELS)
def test_kernels_that_read_what_they_write(kernel: Any, expected: Any) -> None:
    @cute.jit
    def launch(data: cute.Tensor, x: cute.Tensor, out: cute.Tensor):
        kernel(data, x, out).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])

    data, x = (torch.randint(0, 100, (SIZE,), device="cuda").float() for _ in range(2))
    out = torch.zeros_like(x)
    want_data, want_out = expected(data, x)
    tensors = [from_dlpack(tensor, assumed_align=16) for tensor in (data, x, out)]
    assert data.dtype == torch.float32 and tensors[0].element_type is Float32
    compiled = cute.compile(launch, *tensors, options="--infer-invariant-copy")
    compiled(*tensors)
    torch.cuda.synchronize()
    assert torch.equal(data, want_data)
    assert torch.equal(out, want_out)
