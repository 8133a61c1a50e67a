"""Copies that the option repairs beside invariant ones move the same bytes, and their policies reach L2.

As a script it launches the kernels whose sectors the tests let ncu count.
"""

from __future__ import annotations

from typing import Any

import cutlass
import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import from_dlpack

import cute_cache_policy  # noqa: F401  registers the option
from cute_cache_policy import _dsl
from support.l2 import shares

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

EVICT_FIRST, EVICT_LAST = 0x12F0000000000000, 0x14F0000000000000
VECTOR, THREADS, BLOCKS = 4, 256, 65536  # 256 MB: more than any L2 holds
SIZE = VECTOR * THREADS * BLOCKS


@cute.kernel
def universal(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    at = (cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0],)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(atom, cute.local_tile(source, (VECTOR,), at), fragment, cache_policy=policy)
    cute.copy(atom, fragment, cute.local_tile(target, (VECTOR,), at), cache_policy=policy)


@cute.kernel
def branch(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    at = (cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0],)
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128)
    store = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), Float32, num_bits_per_copy=128)
    if policy != 0:
        load = load.with_(cache_policy=policy)
        store = store.with_(cache_policy=policy)
    fragment = cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(load, cute.local_tile(source, (VECTOR,), at), fragment)
    cute.copy(store, fragment, cute.local_tile(target, (VECTOR,), at))


@cute.kernel
def asynchronous(source: cute.Tensor, target: cute.Tensor, policy: Int64):
    thread, _, _ = cute.arch.thread_idx()
    at = (cute.arch.block_idx()[0] * THREADS + thread,)
    operation = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL)
    atom = cute.make_copy_atom(operation, Float32, num_bits_per_copy=128)
    pointer = cute.arch.alloc_smem(Float32, VECTOR * THREADS, alignment=16)
    staged = cute.local_tile(cute.make_tensor(pointer, cute.make_layout(VECTOR * THREADS)), (VECTOR,), (thread,))
    cute.copy(atom, cute.local_tile(source, (VECTOR,), at), staged, cache_policy=policy)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.autovec_copy(staged, cute.local_tile(target, (VECTOR,), at))


KERNELS = {"universal": universal, "branch": branch, "asynchronous": asynchronous}


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, policy: Int64, name: cutlass.Constexpr):
    KERNELS[name](source, target, policy).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])


def copy_of(source: Any, name: str, policy: int) -> Any:
    """What the kernel makes of a tensor."""
    target = torch.full_like(source, float("nan"))
    tensors = [from_dlpack(tensor, assumed_align=16) for tensor in (source, target)]
    compiled = cute.compile(launch, *tensors, Int64(policy), name, options="--honor-cache-policy")
    compiled(*tensors, Int64(policy))
    torch.cuda.synchronize()
    return target


@pytest.mark.filterwarnings("ignore::cute_cache_policy.CachePolicyWarning")
@pytest.mark.parametrize("policy", [EVICT_FIRST, EVICT_LAST, 0x16F0000000000000], ids=hex)
@pytest.mark.parametrize("name", KERNELS)
def test_bytes(name: str, policy: int) -> None:
    source = torch.randn(SIZE, device="cuda")
    assert torch.equal(copy_of(source, name, policy), source)


def test_path_without_a_policy() -> None:
    source = torch.randn(SIZE, device="cuda")
    assert torch.equal(copy_of(source, "branch", 0), source)


@pytest.fixture(scope="module")
def classes() -> dict[str, dict[str, float]]:
    """For each of KERNELS: the share of its sectors that L2 counted in each class."""
    return dict(zip(KERNELS, shares(__file__, "universal|branch|asynchronous"), strict=True))


@pytest.mark.parametrize("name", KERNELS)
def test_policy_reaches_l2(name: str, classes: dict[str, dict[str, float]]) -> None:
    ptxas = _dsl.ptxas_version()
    if name == "asynchronous" and (ptxas is None or ptxas < (13, 4, 59)):
        pytest.skip("the ptxas inside the compiler is older than 13.4.59")
    assert classes[name]["evict_first"] >= 0.99


if __name__ == "__main__":
    data = torch.randn(SIZE, device="cuda")
    for kernel in KERNELS:
        copy_of(data, kernel, EVICT_FIRST)
