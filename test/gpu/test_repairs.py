"""Copies that the option repairs beside invariant ones move the same bytes, and their policies reach L2.

As a script it launches the kernels whose sectors the tests let ncu count.
"""

from __future__ import annotations

import itertools

import cutlass
import numpy as np
import pytest
from cutlass import Float32, Int64, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.runtime import make_ptr

import cute_cache_policy  # noqa: F401  registers the option
from cute_cache_policy import _dsl
from support.device import Array
from support.ncu import Launch, profile

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
    """Uses every policy but EVICT_LAST, which shows in L2 if it is used all the same."""
    at = (cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0],)
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128)
    store = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), Float32, num_bits_per_copy=128)
    if policy != EVICT_LAST:
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
OPTIONS = {"stock": "", "plugin": "--honor-cache-policy"}
#: What the script launches: a kernel, the options to compile it with, and the policy.
LAUNCHES = [*itertools.product(KERNELS, OPTIONS, [EVICT_FIRST]), ("branch", "plugin", EVICT_LAST)]


@cute.jit
def launch(source: cute.Pointer, target: cute.Pointer, policy: Int64, name: cutlass.Constexpr):
    tensors = [cute.make_tensor(pointer, cute.make_layout(SIZE)) for pointer in (source, target)]
    KERNELS[name](*tensors, policy).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])


def data() -> np.ndarray:
    return np.random.default_rng(0).random(SIZE, np.float32)


def copy_of(source: np.ndarray, name: str, policy: int, options: str = "--honor-cache-policy") -> np.ndarray:
    """What the kernel makes of an array."""
    arrays = [Array(source), Array(np.full_like(source, np.nan))]
    pointers = [array.pointer(Float32) for array in arrays]
    compiled = cute.compile(launch, *pointers, Int64(policy), name, options=options)
    compiled(*pointers, Int64(policy))
    return arrays[1].numpy()


@pytest.mark.filterwarnings("ignore::cute_cache_policy.CachePolicyWarning")
@pytest.mark.parametrize("policy", [EVICT_FIRST, EVICT_LAST, 0x16F0000000000000], ids=hex)
@pytest.mark.parametrize("name", KERNELS)
def test_bytes(name: str, policy: int) -> None:
    source = data()
    assert np.array_equal(copy_of(source, name, policy), source)


@pytest.fixture(scope="module")
def launches() -> dict[tuple[str, str, int], Launch]:
    """What was counted for each of LAUNCHES."""
    return dict(zip(LAUNCHES, profile(__file__, "|".join(KERNELS)), strict=True))


@pytest.mark.parametrize("name", KERNELS)
def test_policy_reaches_l2(name: str, launches: dict) -> None:
    ptxas = _dsl.ptxas_version()
    if name == "asynchronous" and (ptxas is None or ptxas < (13, 4, 59)):
        pytest.skip("the ptxas inside the compiler is older than 13.4.59")
    assert launches[name, "plugin", EVICT_FIRST].shares["evict_first"] >= 0.99


def test_path_without_a_policy_has_the_normal_one(launches: dict) -> None:
    assert launches["branch", "plugin", EVICT_LAST].shares["evict_normal"] >= 0.99


@pytest.mark.parametrize("name", KERNELS)
def test_the_stock_compiler_drops_the_policy(name: str, launches: dict) -> None:
    assert launches[name, "stock", EVICT_FIRST].shares["evict_first"] <= 0.01


@pytest.mark.parametrize("name", KERNELS)
def test_verification_finds_what_the_stock_compiler_drops(name: str) -> None:
    pointers = [make_ptr(Float32, 0, cute.AddressSpace.gmem, assumed_align=16)] * 2
    with pytest.raises(DSLUserCodeError, match="expects its cache policy to reach memory"):
        cute.compile(launch, *pointers, Int64(EVICT_FIRST), name, options="--verify-cache-policy")


if __name__ == "__main__":
    source = data()
    for kernel, option, policy in LAUNCHES:
        copy_of(source, kernel, policy, OPTIONS[option])
