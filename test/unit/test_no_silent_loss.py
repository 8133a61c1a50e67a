"""A policy reaches memory, or the user is told that it does not: once, for every kind of copy, under every option."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from cutlass import Boolean, Constexpr, Float32, const_expr, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.nvgpu import CopyG2ROp, CopyR2GOp, CopyUniversalOp, cpasync
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy
from cute_cache_policy import _dsl
from cute_cache_policy.passes.convert_async_copy_to_nvvm import FIRST_RIGHT_PTXAS
from support.ptx import compile_to_ptx

OPTIONS = ("--honor-cache-policy", "--infer-invariant-copy", "--verify-cache-policy")


def copies(recorded: bool) -> int:
    """How many copies of `kernel` are given a policy."""
    return 8 if recorded else 6


def losses(options: str, recorded: bool) -> int:
    """How many of them lose it."""
    if "--honor-cache-policy" in options:
        # the asynchronous one
        ptxas = _dsl.ptxas_version()
        return int(recorded and (ptxas is None or ptxas < FIRST_RIGHT_PTXAS))
    # also the universal one, the invariant ones, and those whose policy is set in a branch, unless that is inferred
    return (3 if "--infer-invariant-copy" in options else 4) + 2 * recorded


def tile(tensor: Any, index: int) -> Any:
    return cute.local_tile(tensor, (4,), (cute.arch.thread_idx()[0] + 32 * index,))


def atom(operation: Any, **settings: Any) -> Any:
    return cute.make_copy_atom(operation, Float32, num_bits_per_copy=128, **settings)


@cute.kernel
def kernel(data: cute.Tensor, out: cute.Tensor, branch: Boolean, recorded: Constexpr):
    policy = cute_cache_policy.evict_last()
    fragments = [cute.make_rmem_tensor((4,), Float32) for _ in range(5)]
    cute.copy(atom(CopyG2ROp(), invariant=True), tile(data, 0), fragments[0], cache_policy=policy)
    cute.copy(atom(CopyG2ROp()), tile(data, 1), fragments[1], cache_policy=policy)
    invariant, coherent, store = atom(CopyG2ROp(), invariant=True), atom(CopyG2ROp()), atom(CopyR2GOp())
    if branch:
        invariant = invariant.with_(cache_policy=policy)
        coherent = coherent.with_(cache_policy=policy)
        store = store.with_(cache_policy=policy)
    cute.copy(invariant, tile(data, 2), fragments[2])
    cute.copy(coherent, tile(data, 3), fragments[3])
    cute.copy(store, fragments[2], tile(out, 2))
    cute.copy(atom(CopyR2GOp()), fragments[3], tile(out, 3), cache_policy=policy)
    if const_expr(recorded):
        cute.copy(atom(CopyUniversalOp()), tile(data, 4), fragments[4], cache_policy=policy)
        staged = cute.make_tensor(cute.arch.alloc_smem(Float32, 128, alignment=16), cute.make_layout(128))
        cute.copy(atom(cpasync.CopyG2SOp()), tile(data, 5), tile(staged, 0), cache_policy=policy)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.autovec_copy(fragments[4], tile(out, 4))
        cute.autovec_copy(tile(staged, 0), tile(out, 5))
    cute.autovec_copy(fragments[0], tile(out, 0))
    cute.autovec_copy(fragments[1], tile(out, 1))


@cute.jit
def launch(data: cute.Tensor, out: cute.Tensor, branch: Boolean, recorded: Constexpr):
    kernel(data, out, branch, recorded).launch(grid=[1, 1, 1], block=[32, 1, 1])


def tensors() -> list[Any]:
    return [make_fake_compact_tensor(Float32, (1024,), assumed_align=16) for _ in range(2)]


def compile_kernel(options: str, recorded: bool = True) -> str:
    return compile_to_ptx(launch, *tensors(), Boolean(True), recorded, options=options)


def test_a_loss_is_shown_once_for_every_line() -> None:
    """A jit function is traced at every call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            compile_kernel("--infer-invariant-copy --generate-line-info")
    assert len(caught) == losses("--infer-invariant-copy", True)


# without a recorded policy, the trace of a kernel takes another way to the warnings
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "set"])
@pytest.mark.parametrize(
    "options", [" ".join(some) for n in (1, 2, 3) for some in itertools.combinations(OPTIONS, n)], ids=str.strip
)
def test_every_policy_is_kept_or_its_loss_is_told_once(options: str, recorded: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ptx, error = compile_kernel(options, recorded), ""
        except DSLUserCodeError as failure:
            ptx, error = "", str(failure)
    told = "\n".join([error, *(str(warning.message) for warning in caught)]).count("atom that drops it")
    kept = ptx.count(".L2::cache_hint")
    assert told == losses(options, recorded)
    assert bool(error) == ("--verify-cache-policy" in options and told > 0)
    assert error or kept == copies(recorded) - told


def test_a_report_alone_names_every_loss_and_warns_of_none() -> None:
    with warnings.catch_warnings(), cute_cache_policy.report() as report:
        warnings.simplefilter("error", cute_cache_policy.CachePolicyWarning)
        ptx = compile_kernel("")
    dropped = [record for record in report if record.remark == "cache policy dropped"]
    assert len(dropped) == losses("", True)
    assert ptx.count(".L2::cache_hint") == copies(True) - len(dropped)
