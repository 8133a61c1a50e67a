"""compute-sanitizer finds nothing: every width, layout and predicate of the coverage matrix, for some element types.

Each batch of cells runs on buffers of exactly the size it may touch: a load past a tail is out of bounds. As a script
it runs the batches, without PyTorch, which takes minutes to start under the sanitizer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cuda.bindings.driver as driver
import pytest

import cute_cache_policy  # noqa: F401  registers the option
from support.cells import BITS, LAYOUTS, SOURCE_VECTORS, THREADS, Batch, Cell

EVICT_FIRST = 0x12F0000000000000
TYPES = ("Float4E2M1FN", "Uint8", "BFloat16", "Float32", "Float64")
LIMIT = 411  # of the SOURCE_VECTORS vectors; no tile is as large


def call(function: Any, *arguments: Any) -> Any:
    """Call a function of the CUDA driver. Raises RuntimeError with its error."""
    error, *values = function(*arguments)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{function.__name__}: {error!r}")
    return values[0] if values else None


def has_gpu() -> bool:
    try:
        call(driver.cuInit, 0)
        return call(driver.cuDeviceGetCount) > 0
    except RuntimeError:
        return False


pytestmark = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")


def run(cells: list[Cell]) -> None:
    """Run cells of one type, width and predicate."""
    limit = LIMIT if cells[0].tail else SOURCE_VECTORS
    size = cells[0].bits // 8
    source = call(driver.cuMemAlloc, limit * size)
    target = call(driver.cuMemAlloc, THREADS * max(cell.vectors for cell in cells) * size)
    call(driver.cuMemsetD8, source, 0x5A, limit * size)
    compiled = Batch(tuple(cells)).compile("--honor-cache-policy")
    compiled(*cells[0].arguments(int(source), int(target), EVICT_FIRST, limit))
    call(driver.cuCtxSynchronize)
    call(driver.cuMemFree, source)
    call(driver.cuMemFree, target)


def main() -> None:
    call(driver.cuInit, 0)
    call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0)))
    batches = cells = 0
    for type_name in TYPES:
        for bits in BITS:
            for tail in (False, True):
                every = (Cell(type_name, bits, layout, tail) for layout in LAYOUTS)
                if chosen := [cell for cell in every if cell.exists]:
                    run(chosen)
                    batches, cells = batches + 1, cells + len(chosen)
    print(f"{cells} cells in {batches} batches")


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_the_matrix_is_clean(tool: str) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is missing")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "86", sys.executable, str(Path(__file__))]
    # the script imports what the test does
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if "Device not supported" in done.stdout:
        pytest.skip("compute-sanitizer does not support the GPU, or how it is reached")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert re.search(r"\d+ cells in \d+ batches", done.stdout)
    assert re.search(r"SUMMARY: 0 ", done.stdout), done.stdout


if __name__ == "__main__":
    main()
