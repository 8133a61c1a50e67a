"""Cache policies on a GPU: the numbers that `createpolicy` makes, and the eviction class that L2 counts.

As a script it launches the kernels whose L2 sectors the tests let Nsight Compute count, in the order of STREAMS.
"""

from __future__ import annotations

from typing import Any

import cutlass
import numpy as np
import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.nvgpu import CacheEvictionPriority, CopyG2ROp

from cute_cache_policy import policies
from cute_cache_policy.ptx import CONSTANT_POLICIES, L2Priority
from support.device import Array
from support.ncu import Launch, profile

FIRST, LAST = CacheEvictionPriority.EVICT_FIRST, CacheEvictionPriority.EVICT_LAST
PRIORITIES = [CacheEvictionPriority[priority.name] for priority in L2Priority]

#: How a stream is loaded, and the share of its sectors that L2 should count in a class.
STREAMS: list[tuple[str, Any, str, float]] = [
    ("first", lambda _: policies.evict_first(), "evict_first", 1.0),
    ("last", lambda _: policies.evict_last(), "evict_last", 1.0),
    ("quarter", lambda _: policies.fractional(LAST, 0.25, FIRST), "evict_last", 0.25),
    ("half", lambda _: policies.fractional(FIRST, 0.5), "evict_first", 0.5),
    ("rest", lambda _: policies.fractional(LAST, 0.75, FIRST), "evict_first", 0.25),
    ("range", lambda src: policies.range(src.iterator, LAST, FIRST, BYTES // 4, BYTES), "evict_last", 0.25),
]

#: A stream that no L2 holds.
BYTES, THREADS, VECTOR = 256 << 20, 256, 4


@cute.kernel
def policy_values(out: cute.Tensor, share: Float32):
    for number, priority in enumerate(PRIORITIES):
        out[number] = policies.fractional(priority, share)


@cute.jit
def make_policies(out: cute.Pointer, share: Float32):
    values = cute.make_tensor(out, cute.make_layout(len(PRIORITIES)))
    policy_values(values, share).launch(grid=[1, 1, 1], block=[1, 1, 1])


def test_a_constant_policy_is_what_createpolicy_makes() -> None:
    # a share that only the launch knows, so that the instruction has to compute it
    out = Array(np.zeros(len(PRIORITIES), np.int64))
    compiled = cute.compile(make_policies, out.pointer(Int64), Float32(0.0))
    compiled(out.pointer(Int64), Float32(1.0))
    assert out.numpy().tolist() == [CONSTANT_POLICIES[priority] for priority in L2Priority]


@cute.kernel
def stream_kernel(src: cute.Tensor, dst: cute.Tensor, make_policy: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = (block * THREADS + thread,)
    atom = cute.make_copy_atom(CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(atom, cute.local_tile(src, (VECTOR,), at), fragment, cache_policy=make_policy(src))
    cute.autovec_copy(fragment, cute.local_tile(dst, (VECTOR,), at))


@cute.jit
def stream(src: cute.Pointer, dst: cute.Pointer, make_policy: cutlass.Constexpr):
    tensors = [cute.make_tensor(pointer, cute.make_layout(BYTES // 4)) for pointer in (src, dst)]
    stream_kernel(*tensors, make_policy).launch(grid=[BYTES // 16 // THREADS, 1, 1], block=[THREADS, 1, 1])


def main() -> None:
    source = np.random.default_rng(0).random(BYTES // 4, np.float32)
    for name, make_policy, _, _ in STREAMS:
        arrays = [Array(source), Array(np.zeros_like(source))]
        pointers = [array.pointer(Float32) for array in arrays]
        cute.compile(stream, *pointers, make_policy, options="--honor-cache-policy")(*pointers)
        assert np.array_equal(source, arrays[1].numpy()), name


@pytest.fixture(scope="module")
def launches() -> list[Launch]:
    """What was counted for each of STREAMS."""
    return profile(__file__, "stream_kernel")


@pytest.mark.parametrize("number", range(len(STREAMS)), ids=[name for name, *_ in STREAMS])
def test_l2_counts_the_class_of_the_policy(number: int, launches: list[Launch]) -> None:
    _, _, priority, share = STREAMS[number]
    assert len(launches) == len(STREAMS)
    assert launches[number].shares[priority] == pytest.approx(share, abs=0.03)


if __name__ == "__main__":
    main()
