"""Universal copies: what the stock compiler refuses, the option does not compile; what it cannot keep, it names."""

from __future__ import annotations

import warnings

import pytest
from cutlass import BFloat16, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy
from cute_cache_policy import CachePolicyWarning
from support.ptx import compile_to_ptx, global_loads


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), BFloat16, num_bits_per_copy=128)
    fragment = cute.make_rmem_tensor((8,), BFloat16)
    cute.copy(atom, cute.local_tile(source, (8,), (thread,)), fragment, cache_policy=Int64(0x12F0000000000000))
    cute.autovec_copy(fragment, cute.local_tile(target, (8,), (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor):
    copy(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


@pytest.mark.parametrize("options", ["", "--honor-cache-policy"])
def test_misaligned_copy_is_refused(options: str) -> None:
    tensors = [make_fake_compact_tensor(BFloat16, (256,), assumed_align=8) for _ in range(2)]
    with pytest.raises(Exception, match=r"alignment \(64 bits\)\s+does not\s+meet requirement \(128 bits\)"):
        cute.compile(launch, *tensors, options=f"--gpu-arch sm_90a {options}")


@cute.kernel
def copy_generic(source: cute.Tensor, target: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), BFloat16, num_bits_per_copy=128)
    fragment = cute.make_rmem_tensor((8,), BFloat16)
    pointer = cute.make_ptr(BFloat16, source.iterator.toint(), cute.AddressSpace.generic, assumed_align=16)
    anywhere = cute.make_tensor(pointer, cute.make_layout((8,)))
    cute.copy(atom, anywhere, fragment, cache_policy=Int64(0x12F0000000000000))
    cute.autovec_copy(fragment, cute.local_tile(target, (8,), (0,)))


@cute.jit
def launch_generic(source: cute.Tensor, target: cute.Tensor):
    copy_generic(source, target).launch(grid=[1, 1, 1], block=[1, 1, 1])


@pytest.mark.parametrize(("options", "count"), [("", 0), ("--infer-invariant-copy", 1), ("--honor-cache-policy", 1)])
def test_policy_that_cannot_be_kept_is_a_warning(options: str, count: int) -> None:
    tensors = [make_fake_compact_tensor(BFloat16, (256,), assumed_align=16) for _ in range(2)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cute.compile(launch_generic, *tensors, options=f"--gpu-arch sm_90a {options}")
    messages = [str(w.message) for w in caught if w.category is CachePolicyWarning]
    assert len(messages) == count
    assert all("got a 'universal_copy' atom that drops it: copy with 'CopyG2ROp'" in text for text in messages)


@cute.kernel
def copy_tiled(source: cute.Tensor, target: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), BFloat16, num_bits_per_copy=128)
    hinted = atom.with_(cache_policy=Int64(0x12F0000000000000))
    tiled = cute.make_tiled_copy_tv(hinted, cute.make_layout((32,)), cute.make_layout((8,)))
    part = tiled.get_slice(cute.arch.thread_idx()[0])
    fragment = cute.make_rmem_tensor_like(part.partition_S(source))
    cute.copy(tiled, part.partition_S(source), fragment)
    cute.autovec_copy(fragment, part.partition_D(target))


@cute.jit
def launch_tiled(source: cute.Tensor, target: cute.Tensor):
    copy_tiled(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


def test_policy_of_an_atom_reaches_the_copies_that_are_tiled_with_it() -> None:
    tensors = [make_fake_compact_tensor(BFloat16, (256,), assumed_align=16) for _ in range(2)]
    with cute_cache_policy.report() as report:
        ptx = compile_to_ptx(launch_tiled, *tensors, options="--honor-cache-policy")
    assert global_loads(ptx) == ["ld.global.L2::cache_hint.v4.b32"]
    assert "evict_first" in [record.policy for record in report]
