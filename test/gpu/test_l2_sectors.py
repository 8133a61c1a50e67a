"""A policy reaches L2, through non-coherent loads: Nsight Compute counts a stream's loads, and sectors by class.

A guard for ptxas as well as for the passes. As a script it launches the streams whose sectors the tests let ncu count.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import numpy as np
import pytest
from cutlass import Float32, Int64, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.runtime import make_ptr

import cute_cache_policy  # noqa: F401  registers the option
from support.device import Array
from support.ncu import Launch, profile

POLICIES = {"evict_first": 0x12F0000000000000, "evict_last": 0x14F0000000000000, "evict_normal": 0x16F0000000000000}
OPTIONS = {"stock": "", "plugin": "--honor-cache-policy"}
STREAMS = list(itertools.product(POLICIES, OPTIONS))

BYTES, THREADS, VECTOR = 256 << 20, 256, 4  # more than any L2 holds


@cute.kernel
def stream_kernel(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = (block * THREADS + tid,)
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(atom, cute.local_tile(source, (VECTOR,), at), fragment, cache_policy=policy)
    cute.autovec_copy(fragment, cute.local_tile(target, (VECTOR,), at))


@cute.jit
def launch(source: cute.Pointer, target: cute.Pointer, policy: Int64):
    tensors = [cute.make_tensor(pointer, cute.make_layout(BYTES // 4)) for pointer in (source, target)]
    blocks = BYTES // 4 // VECTOR // THREADS
    stream_kernel(*tensors, policy).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])


def main() -> None:
    source = np.random.default_rng(0).random(BYTES // 4, np.float32)
    for policy, option in STREAMS:
        arrays = [Array(source), Array(np.zeros_like(source))]
        arguments = (*(array.pointer(Float32) for array in arrays), Int64(POLICIES[policy]))
        cute.compile(launch, *arguments, options=OPTIONS[option])(*arguments)
        assert np.array_equal(source, arrays[1].numpy())


@pytest.fixture(scope="module")
def launches() -> dict[tuple[str, str], Launch]:
    """What was counted for each of STREAMS."""
    return dict(zip(STREAMS, profile(__file__, "stream_kernel"), strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_sectors_of_a_stream_carry_its_policy(policy: str, launches: dict) -> None:
    assert launches[policy, "plugin"].shares[policy] >= 0.99


@pytest.mark.parametrize("policy", ["evict_first", "evict_last"])
def test_the_stock_compiler_drops_the_policy(policy: str, launches: dict) -> None:
    assert launches[policy, "stock"].shares[policy] <= 0.01


@pytest.mark.parametrize(("policy", "option"), STREAMS)
def test_the_loads_are_non_coherent(policy: str, option: str, launches: dict) -> None:
    launch = launches[policy, option]
    assert launch.non_coherent == {True}
    assert sum(launch.loads.values()) == BYTES // (4 * VECTOR) // 32


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("policy", ["evict_first", "evict_last"])
def test_verification_knows_what_l2_counts(policy: str, option: str, launches: dict) -> None:
    pointers = [make_ptr(Float32, 0, cute.AddressSpace.gmem, assumed_align=16)] * 2
    lost = pytest.raises(DSLUserCodeError, match="expects its cache policy to reach memory")
    with nullcontext() if launches[policy, option].shares[policy] > 0.5 else lost:
        cute.compile(launch, *pointers, Int64(POLICIES[policy]), options=f"{OPTIONS[option]} --verify-cache-policy")


if __name__ == "__main__":
    main()
