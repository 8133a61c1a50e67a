"""Kernels that store to the memory that they load with `invariant=True` give what sequential execution gives."""

from __future__ import annotations

import warnings

import cutlass
import numpy as np
import pytest
from cutlass import Float32, Int64, cute

from cute_cache_policy import CachePolicyWarning
from support.device import Array

EVICT_LAST = 0x14F0000000000000
VECTOR, THREADS, BLOCKS = 4, 64, 128
SIZE = VECTOR * THREADS * BLOCKS


@cute.kernel
def add_in_place(residual: cute.Tensor, x: cute.Tensor, y: cute.Tensor, policy: Int64, reload: cutlass.Constexpr):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    at = (block * THREADS + tid,)
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    mine = cute.local_tile(residual, (VECTOR,), at)
    total, addend = cute.make_rmem_tensor((VECTOR,), Float32), cute.make_rmem_tensor((VECTOR,), Float32)
    cute.copy(atom, mine, total, cache_policy=policy)
    cute.copy(atom, cute.local_tile(x, (VECTOR,), at), addend, cache_policy=policy)
    total.store(total.load() + addend.load())
    cute.autovec_copy(total, mine)
    if cutlass.const_expr(reload):
        again = cute.make_rmem_tensor((VECTOR,), Float32)
        cute.copy(atom, mine, again, cache_policy=policy)
        cute.autovec_copy(again, cute.local_tile(y, (VECTOR,), at))
    else:
        cute.autovec_copy(total, cute.local_tile(y, (VECTOR,), at))


@cute.jit
def launch(residual: cute.Pointer, x: cute.Pointer, y: cute.Pointer, policy: Int64, reload: cutlass.Constexpr):
    tensors = [cute.make_tensor(pointer, cute.make_layout(SIZE)) for pointer in (residual, x, y)]
    add_in_place(*tensors, policy, reload).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])


@pytest.mark.parametrize("reload", [False, True], ids=["load_then_store", "load_again_after_store"])
def test_in_place_kernels_are_sequential(reload: bool) -> None:
    random = np.random.default_rng(0)
    residual, x = (random.standard_normal(SIZE, np.float32) for _ in range(2))
    arrays = [Array(values) for values in (residual, x, np.full_like(x, np.nan))]
    pointers = [array.pointer(Float32) for array in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CachePolicyWarning)
        compiled = cute.compile(launch, *pointers, Int64(EVICT_LAST), reload, options="--honor-cache-policy")
    compiled(*pointers, Int64(EVICT_LAST))
    assert np.array_equal(arrays[0].numpy(), residual + x)
    assert np.array_equal(arrays[2].numpy(), residual + x)
