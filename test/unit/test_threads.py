"""Compiles in several threads.

The DSL itself survives one compile at a time: two threads in `cute.compile` at once share the state of one DSL object,
and fail at random or abort the process. Tried: 4.6.0, 4.7.1 and 4.8.1 without this package, and 4.8.1 with it. A lock
around `cute.compile` is the user's to take. What is tested is that this package adds nothing to that: with the lock,
threads give what one thread gives.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import cutlass
from cutlass import Int64, cute

import cute_cache_policy  # noqa: F401 - registers the option
from support.scale import EVICT_FIRST, HINTED, arguments, copy_vector


@cute.kernel
def copies(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    for i in cutlass.range_constexpr(count):
        source, target = (cute.local_tile(t, (512,), (i,)) for t in (x, y))
        copy_vector(source, target, Int64(EVICT_FIRST))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    copies(x, y, count).launch(grid=[1, 1, 1], block=[128, 1, 1])


def test_threads_give_what_one_thread_gives(tmp_path: Path) -> None:
    lock = threading.Lock()

    def compile_(count: int, honor: bool) -> str:
        options = f"--gpu-arch sm_90a --keep-ptx --dump-dir {tmp_path}{' --honor-cache-policy' if honor else ''}"
        with lock:
            return cute.compile(launch, *arguments(), count, options=options).artifacts.PTX

    cases = list(product((1, 2, 5, 9), (True, False)))
    alone = [compile_(*case) for case in cases]
    assert [text.count(HINTED) for text in alone] == [count if honor else 0 for count, honor in cases]
    with ThreadPoolExecutor(max_workers=8) as threads:
        together = list(threads.map(lambda case: compile_(*case), 3 * cases))
    assert together == 3 * alone
