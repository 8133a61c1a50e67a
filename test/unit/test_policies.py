"""Cache policies as values: what they compile to, and what `cache_policy=` accepts."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import cutlass
import pytest
from cutlass import Float32, Int32, Int64, cute
from cutlass.cute.nvgpu import CacheEvictionPriority, CopyG2ROp, CopyR2GOp
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy
from cute_cache_policy import CachePolicyError, policies

FIRST, LAST, NORMAL, UNCHANGED, NO_ALLOCATE = (
    CacheEvictionPriority[f"{name}"]
    for name in ("EVICT_FIRST", "EVICT_LAST", "EVICT_NORMAL", "EVICT_UNCHANGED", "NO_ALLOCATE")
)

SHORTHANDS = {
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
    "evict_normal": 0x16F0000000000000,
    "evict_unchanged": 0x10F0000000000000,
}


@cute.kernel
def copy_in_loop(
    src: cute.Tensor, dst: cute.Tensor, count: Int32, share: Float32, load: cutlass.Constexpr, store: cutlass.Constexpr
):
    """Two loads and a store an iteration; `load` and `store` make the policies from what a kernel knows."""
    thread, _, _ = cute.arch.thread_idx()
    g2r = cute.make_copy_atom(CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    r2g = cute.make_copy_atom(CopyR2GOp(), Float32, num_bits_per_copy=128)
    for i in cutlass.range(count, unroll=1):
        a, b = cute.make_rmem_tensor((4,), Float32), cute.make_rmem_tensor((4,), Float32)
        cute.copy(g2r, cute.local_tile(src, (4,), (32 * i + thread,)), a, cache_policy=load(src, count, share))
        cute.copy(g2r, cute.local_tile(src, (4,), (thread * i,)), b, cache_policy=load(src, count, share))
        a.store(a.load() + b.load())
        cute.copy(r2g, a, cute.local_tile(dst, (4,), (32 * i + thread,)), cache_policy=store(src, count, share))


@cute.jit
def launch(
    src: cute.Tensor, dst: cute.Tensor, count: Int32, share: Float32, load: cutlass.Constexpr, store: cutlass.Constexpr
):
    copy_in_loop(src, dst, count, share, load, store).launch(grid=[1, 1, 1], block=[32, 1, 1])


def compile_loop(directory: Path, load: Any, store: Any, options: str = "--honor-cache-policy") -> str:
    """The PTX of `copy_in_loop`."""
    src, dst = (make_fake_compact_tensor(Float32, (4096,), assumed_align=16) for _ in range(2))
    options = f"{options} --gpu-arch sm_90a --keep-ptx --dump-dir {directory}"
    return cute.compile(launch, src, dst, Int32(1), Float32(0.5), load, store, options=options).artifacts.PTX


def accesses(ptx: str) -> list[str]:
    """The loads, stores and policies of a kernel, and the label of its loop, in order."""
    return re.findall(r"createpolicy\S+|(?:ld|st)\.global\S+|\$L__BB0_2(?=:)", ptx)


LOOP = [
    "$L__BB0_2",
    "ld.global.nc.L2::cache_hint.v4.b32",
    "ld.global.nc.L2::cache_hint.v4.b32",
    "st.global.L2::cache_hint.v4.b32",
]

FRACTIONAL, RANGE = "createpolicy.fractional.L2::", "createpolicy.range.global.L2::"

#: The policies, and the `createpolicy` they take.
POLICIES = {
    "half": (lambda *_: policies.fractional(FIRST, 0.5), f"{FRACTIONAL}evict_first.b64"),
    "pair": (lambda *_: policies.fractional(LAST, 0.25, FIRST), f"{FRACTIONAL}evict_last.L2::evict_first.b64"),
    "share": (lambda _, __, share: policies.fractional(NORMAL, share), f"{FRACTIONAL}evict_normal.b64"),
    "range": (
        lambda src, *_: policies.range(src.iterator, LAST, UNCHANGED, 4096, 16384),
        f"{RANGE}evict_last.L2::evict_unchanged.b64",
    ),
    "range-of-dynamic-size": (
        lambda src, count, _: policies.range(src.iterator, FIRST, None, count, 1 << 20),
        f"{RANGE}evict_first.b64",
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_equal_policies_are_one_in_front_of_the_loop(name: str, tmp_path: Path) -> None:
    make, createpolicy = POLICIES[name]
    assert accesses(compile_loop(tmp_path, make, make)) == [createpolicy, *LOOP]


def test_a_kernel_has_one_policy_of_each_kind(tmp_path: Path) -> None:
    (load, first), (store, last) = POLICIES["half"], POLICIES["pair"]
    found = accesses(compile_loop(tmp_path, load, store))
    assert sorted(found[:2]) == sorted([first, last])
    assert found[2:] == LOOP


#: What `cache_policy=` accepts for a policy of all accesses.
SPELLINGS = {
    "shorthand": lambda name: getattr(cute_cache_policy, name)(),
    "constant": lambda name: getattr(cute_cache_policy, name.upper()),
    "fraction-1": lambda name: policies.fractional(CacheEvictionPriority[name.upper()], 1.0),
    "member": lambda name: CacheEvictionPriority[name.upper()],
    "int": lambda name: SHORTHANDS[name],
    "Int64": lambda name: Int64(SHORTHANDS[name]),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_policy_of_all_accesses_is_a_constant(spelling: str, tmp_path: Path) -> None:
    load, store = (lambda *_, name=name: SPELLINGS[spelling](name) for name in ("evict_first", "evict_last"))
    ptx = compile_loop(tmp_path, load, store)
    assert accesses(ptx) == LOOP
    for name in ("evict_first", "evict_last"):
        assert ptx.count(str(SHORTHANDS[name])) == 1


@pytest.mark.parametrize("name", SHORTHANDS)
def test_shorthands_have_the_bits_of_their_policy(name: str) -> None:
    assert getattr(cute_cache_policy, name)().value == SHORTHANDS[name]


@pytest.mark.parametrize("policy", [SHORTHANDS["evict_first"], FIRST])
def test_without_the_option_the_dsl_takes_what_it_always_took(policy: Any, tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'ir_value'"):
        compile_loop(tmp_path, lambda *_: policy, lambda *_: policy, options="")


ERRORS = {
    "nothing": (lambda: policies.fractional(FIRST, 0.0), "a fraction is more than 0 and at most 1"),
    "negative": (lambda: policies.fractional(FIRST, -0.5), "a fraction is more than 0 and at most 1"),
    "too much": (lambda: policies.fractional(FIRST, 1.01), "a fraction is more than 0 and at most 1"),
    "in a box": (lambda: policies.fractional(FIRST, Float32(2.0)), "a fraction is more than 0 and at most 1"),
    "L1": (lambda: policies.fractional(NO_ALLOCATE), "expects one of EVICT_NORMAL, EVICT_FIRST, EVICT_LAST"),
    "secondary": (lambda: policies.fractional(FIRST, 0.5, LAST), "a secondary priority is EVICT_FIRST or"),
    "sizes": (
        lambda: policies.range(None, LAST, None, 2, 1),  # pyright: ignore[reportArgumentType]
        "sizes are 32-bit numbers of bytes, and the primary range is part of the total",
    ),
    "4 GiB": (
        lambda: policies.range(None, LAST, None, 2, 2**32),  # pyright: ignore[reportArgumentType]
        "sizes are 32-bit numbers of bytes, and the primary range is part of the total",
    ),
    "cache_policy=-1": (lambda: policies.as_value(-1), "'cache_policy' expects 64 bits, but got -0x1"),
    "cache_policy=2**64": (lambda: policies.as_value(2**64), "'cache_policy' expects 64 bits, but got 0x1000"),
    "cache_policy='evict_last'": (
        lambda: policies.as_value("evict_last"),
        "CacheEvictionPriority, but got 'evict_last'",
    ),
    "range of a tensor": (
        lambda: policies.range("x", policies.EVICT_LAST, None, 1, 1),
        "as 'tensor.iterator' is, but got 'x'",
    ),
    "cache_policy=NO_ALLOCATE": (lambda: policies.as_value(NO_ALLOCATE), "but got NO_ALLOCATE (PTX ISA 9.7.9.18)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_the_rule(name: str) -> None:
    make, message = ERRORS[name]
    with pytest.raises(CachePolicyError, match=re.escape(message)):
        make()


def test_an_error_reaches_the_user_of_a_copy(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="a cache policy expects one of EVICT_NORMAL"):
        compile_loop(tmp_path, lambda *_: NO_ALLOCATE, lambda *_: FIRST)
    with pytest.raises(Exception, match="a fraction is more than 0 and at most 1"):
        compile_loop(tmp_path, lambda *_: policies.fractional(FIRST, 2.0), lambda *_: FIRST)


def test_an_error_of_a_copy_names_the_line_of_the_copy(tmp_path: Path) -> None:
    with pytest.raises(Exception) as caught:
        compile_loop(tmp_path, lambda *_: NO_ALLOCATE, lambda *_: FIRST)
    assert __file__ in str(caught.value)
    assert "_dsl.py" not in str(caught.value)


def test_a_star_import_shadows_no_builtin() -> None:
    assert [name for name in cute_cache_policy.__all__ if hasattr(builtins, name)] == []
