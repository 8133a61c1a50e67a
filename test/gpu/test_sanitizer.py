"""compute-sanitizer finds nothing in all other files of this folder (`--sanitize`), and finds what is planted here.

As a script it launches a kernel with a planted error, named by the tool that is to find it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cutlass import Float32, cute

import cute_cache_policy  # noqa: F401  registers the option
from support.cells import Cell
from support.device import Array
from support.runs import draw, run

THREADS, PARTS = 64, 16

#: What each tool says of the error that is planted for it.
FINDINGS = {
    "memcheck": r"Invalid __global__ read of size 16 bytes",
    "racecheck": r"Race reported between Write access",
}


@cute.kernel
def race(out: cute.Tensor):
    """A warp reads what the other writes, without a barrier in between."""
    thread, _, _ = cute.arch.thread_idx()
    shared = cute.make_tensor(cute.arch.alloc_smem(Float32, THREADS), cute.make_layout(THREADS))
    shared[thread] = Float32(thread)
    out[thread] = shared[(thread + 32) % THREADS]


@cute.jit
def launch_race(out: cute.Pointer):
    race(cute.make_tensor(out, cute.make_layout(THREADS))).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


def plant(tool: str) -> None:
    if tool == "racecheck":
        out = Array(np.zeros(THREADS, np.float32)).pointer(Float32)
        cute.compile(launch_race, out)(out)
    else:
        cell = Cell("Float32", 128)
        source, limit = draw(cell, seed=0)
        # all that the cell reads but the last vector
        run(cell, "--honor-cache-policy", source[: (cell.reach - 1) * cell.bits // 8], limit)


def sanitize(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python, and what it starts, under a tool of compute-sanitizer, which returns 86 if it finds an error."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is missing")
    # the process imports what the test does, and is no worker of pytest-xdist
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    options = ["--tool", tool, "--error-exitcode", "86", "--target-processes", "all"]
    command = [sanitizer, *options, sys.executable, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "Device not supported" in done.stdout:
        pytest.skip("compute-sanitizer does not support the GPU, or how it is reached")
    return done


@pytest.mark.parametrize("tool", FINDINGS)
def test_a_planted_error_is_found(tool: str) -> None:
    done = sanitize(tool, __file__, tool)
    assert done.returncode == 86, done.stdout
    assert re.search(FINDINGS[tool], done.stdout), done.stdout


# in parts, which pytest-xdist may run side by side: under one compute-sanitizer, processes beyond ten wait for ever
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("tool", FINDINGS)
def test_the_suite_is_clean(tool: str, part: int, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--sanitize"):
        pytest.skip("takes minutes: --sanitize")
    suite = [str(Path(__file__).parent), "--ignore", __file__, "--part", f"{part}/{PARTS}"]
    done = sanitize(tool, "-m", "pytest", *suite, "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert re.search(r"SUMMARY: 0 ", done.stdout), done.stdout
    passed = re.search(r"=+ (\d+) passed", done.stdout)
    assert passed, done.stdout
    request.node.user_properties.append((tool, int(passed[1])))


if __name__ == "__main__":
    plant(sys.argv[1])
