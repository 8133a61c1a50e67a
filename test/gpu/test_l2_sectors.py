"""A policy reaches the L2: Nsight Compute counts the sectors that a stream reads by their eviction class.

A guard for ptxas as well as for the passes. As a script it launches the streams whose sectors the tests let ncu count.
"""

from __future__ import annotations

import itertools

import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import from_dlpack

import cute_cache_policy  # noqa: F401  registers the option
from support import l2

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

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
def launch(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    blocks = BYTES // 4 // VECTOR // THREADS
    stream_kernel(source, target, policy).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])


def main() -> None:
    source = torch.randn(BYTES // 4, device="cuda")
    for policy, option in STREAMS:
        target = torch.zeros_like(source)
        arguments = (*(from_dlpack(t, assumed_align=16) for t in (source, target)), Int64(POLICIES[policy]))
        cute.compile(launch, *arguments, options=OPTIONS[option])(*arguments)
        torch.cuda.synchronize()
        assert torch.equal(source, target)


@pytest.fixture(scope="module")
def shares() -> dict[tuple[str, str], dict[str, float]]:
    """For each of STREAMS: the share of its sectors that L2 counted in each class."""
    return dict(zip(STREAMS, l2.shares(__file__, "stream_kernel"), strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_sectors_of_a_stream_carry_its_policy(policy: str, shares: dict) -> None:
    assert shares[policy, "plugin"][policy] >= 0.99


@pytest.mark.parametrize("policy", ["evict_first", "evict_last"])
def test_the_stock_compiler_drops_the_policy(policy: str, shares: dict) -> None:
    assert shares[policy, "stock"][policy] <= 0.01


if __name__ == "__main__":
    main()
