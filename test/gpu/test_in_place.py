"""Kernels that store to the memory that they load with `invariant=True` give what sequential execution gives."""

from __future__ import annotations

import warnings

import cutlass
import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import from_dlpack

from cute_cache_policy import CachePolicyWarning

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

EVICT_LAST = 0x14F0000000000000
VECTOR, THREADS, BLOCKS = 4, 64, 128


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
def launch(residual: cute.Tensor, x: cute.Tensor, y: cute.Tensor, policy: Int64, reload: cutlass.Constexpr):
    add_in_place(residual, x, y, policy, reload).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1])


@pytest.mark.parametrize("reload", [False, True], ids=["load_then_store", "load_again_after_store"])
def test_in_place_kernels_are_sequential(reload: bool) -> None:
    residual, x = (torch.randn(BLOCKS * THREADS * VECTOR, device="cuda") for _ in range(2))
    expected = residual + x
    y = torch.full_like(x, float("nan"))
    tensors = [from_dlpack(tensor, assumed_align=16) for tensor in (residual, x, y)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CachePolicyWarning)
        compiled = cute.compile(launch, *tensors, Int64(EVICT_LAST), reload, options="--honor-cache-policy")
    compiled(*tensors, Int64(EVICT_LAST))
    torch.cuda.synchronize()
    assert torch.equal(residual, expected)
    assert torch.equal(y, expected)
