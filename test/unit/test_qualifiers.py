"""Load qualifiers beside `invariant=True`: what `cute.make_copy_atom` accepts, and that the PTX has it."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import cutlass
import pytest
from cutlass import Float32, Float64, Int64, Uint8, cute
from cutlass.cute.nvgpu import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyS2ROp,
    CopyUniversalOp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    StoreCacheMode,
)
from cutlass.cute.nvgpu.cpasync import CopyG2SOp
from cutlass.cute.runtime import make_ptr

from cute_cache_policy import CachePolicyError
from cute_cache_policy.ptx import CacheOperator, L1Priority, L2Priority, PrefetchSize, Target, load_shape
from cute_cache_policy.qualifiers import respell
from support.forms import Form, copy_forms, forms

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")


def compile_forms(chosen: list[Form], directory: Path, options: str) -> str:
    """The PTX of a kernel that executes all of `chosen`."""
    pointer = make_ptr(Uint8, 0, cute.AddressSpace.gmem, assumed_align=32)
    options = f"{options} --keep-ptx --dump-dir {directory}"
    return cute.compile(copy_forms, pointer, pointer, chosen, Int64(0), options=options).artifacts.PTX


def mnemonics(ptx: str) -> set[str]:
    return set(re.findall(r"ld\.global\S+", ptx))


@pytest.mark.parametrize(("target", "count"), [("sm_80", 280), ("sm_90a", 280), ("sm_100a", 448), ("sm_120a", 448)])
def test_every_form_is_reached(target: str, count: int, tmp_path: Path) -> None:
    widths = (8, 16, 32, 64, 128, 256)[: 6 if count == 448 else 5]
    reached = [compile_forms(forms(bits), tmp_path, f"--honor-cache-policy --gpu-arch {target}") for bits in widths]
    found = set[str]().union(*map(mnemonics, reached))
    assert all(".nc" in mnemonic for mnemonic in found)
    assert len(found) == count


#: The names of the qualifiers in the DSL and in PTX.
MODES = dict(zip(LoadCacheMode, CacheOperator))
L1 = {p: None if p is CacheEvictionPriority.EVICT_NORMAL else L1Priority[p.name] for p in CacheEvictionPriority}
L2 = {None: None, **{p: L2Priority[p.name] for p in CacheEvictionPriority if p.name != "NO_ALLOCATE"}}
PREFETCH = dict(zip([p for p in L2PrefetchSize if p is not L2PrefetchSize.RESERVED], (None, *PrefetchSize)))


@pytest.mark.parametrize("target", TARGETS)
def test_an_atom_is_made_exactly_if_ptx_has_its_load(target: str) -> None:
    arch = Target.parse(target)
    for element, bits, mode, l1, l2, prefetch in itertools.product(
        (Uint8, Float32, Float64), (8, 16, 32, 64, 128, 256), MODES, L1, L2, PREFETCH
    ):
        if bits < element.width:
            continue
        fields = {
            "num_bits_per_copy": bits,
            "invariant": True,
            "load_cache_mode": mode,
            "l1c_evict_priority": l1,
            "l2_prefetch_size": prefetch,
            **({} if l2 is None else {"l2_evict_priority": l2}),
        }
        load = dataclasses.replace(
            load_shape(bits, element.width),
            cop=None if mode is LoadCacheMode.ALWAYS else MODES[mode],
            l1=L1[l1],
            l2=L2[l2],
            prefetch=PREFETCH[prefetch],
        )
        legal = not load.pieces(arch)[0].violations(arch)
        try:
            respell(element, fields, target)
            assert legal, fields
        except CachePolicyError as error:
            assert not legal, fields
            assert "(PTX ISA 9.7.9." in str(error)


def test_without_qualifiers_the_fields_stay_as_they_are() -> None:
    fields = {"num_bits_per_copy": 128, "invariant": True, "l2_prefetch_size": L2PrefetchSize.NONE}
    assert respell(Uint8, fields, "sm_90a") == fields
    ordered = {"memory_order": MemoryOrder.ACQUIRE, "memory_scope": MemoryScope.GPU, "invariant": False}
    assert respell(Uint8, ordered, "sm_90a") == ordered


NO_ALLOCATE = CacheEvictionPriority.NO_ALLOCATE

ERRORS = {
    "mode-and-l1": (
        {"load_cache_mode": LoadCacheMode.STREAMING, "l1c_evict_priority": NO_ALLOCATE},
        "expects qualifiers of one load, but got ld.global.cs.nc.L1::no_allocate.v4.b32 on sm_90a: a cache operator "
        "excludes an L1 eviction priority: use one of the two (PTX ISA 9.7.9.8)",
    ),
    "last-use": (
        {"load_cache_mode": LoadCacheMode.LAST_USE},
        "excludes the cache operators '.lu' and '.cv': use '.ca', '.cg' or '.cs' (ALWAYS, GLOBAL or STREAMING)",
    ),
    "none": (
        {"load_cache_mode": LoadCacheMode.NONE},
        "excludes the cache operators '.lu' and '.cv': use '.ca', '.cg' or '.cs' (ALWAYS, GLOBAL or STREAMING)",
    ),
    "order": (
        {"memory_order": MemoryOrder.RELAXED},
        "expects MemoryOrder.WEAK with invariant=True, but got MemoryOrder.RELAXED: 'ld.global.nc' is a weak load "
        "(PTX ISA 9.7.9.9), leave out invariant=True for an ordered one",
    ),
    "release": (
        {"memory_order": MemoryOrder.RELEASE, "invariant": False},
        "expects a memory order that loads have, but got MemoryOrder.RELEASE: use RELAXED or ACQUIRE (PTX ISA 9.7.9.8)",
    ),
    "scope": (
        {"memory_scope": MemoryScope.GPU, "l1c_evict_priority": NO_ALLOCATE},
        "expects only qualifiers with invariant=True, but got memory_scope: leave them out",
    ),
    "reserved": (
        {"l2_prefetch_size": L2PrefetchSize.RESERVED},
        "expects an L2 prefetch size of 64, 128 or 256 bytes, but got L2PrefetchSize.RESERVED",
    ),
    "static-l2-narrow": (
        {"l2_evict_priority": CacheEvictionPriority.EVICT_FIRST},
        "a static L2 eviction priority expects a 256-bit load ('.v8.b32' or '.v4.b64'): use a cache policy",
    ),
    "static-l2-target": (
        {"l2_evict_priority": CacheEvictionPriority.EVICT_FIRST, "num_bits_per_copy": 256},
        "a static L2 eviction priority expects sm_100 or later: use a cache policy",
    ),
    "static-l2-unchanged": (
        {"l2_evict_priority": CacheEvictionPriority.EVICT_UNCHANGED, "num_bits_per_copy": 256},
        "a static L2 eviction priority is one of first, last and normal: use a cache policy for unchanged",
    ),
    "static-l2-no-allocate": (
        {"l2_evict_priority": NO_ALLOCATE, "num_bits_per_copy": 256},
        "expects an L2 priority as 'l2_evict_priority', but got CacheEvictionPriority.NO_ALLOCATE: only L1 has it",
    ),
    "static-l2-coherent": (
        {"l2_evict_priority": CacheEvictionPriority.EVICT_FIRST, "invariant": False},
        "expects invariant=True with 'l2_evict_priority', but got CacheEvictionPriority.EVICT_FIRST",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_the_rule(name: str) -> None:
    fields, message = ERRORS[name]
    with pytest.raises(CachePolicyError, match=re.escape(message)):
        respell(Uint8, {"num_bits_per_copy": 128, "invariant": True, **fields}, "sm_90a")


@pytest.mark.parametrize("value", [None, "no_allocate", 1.5, [], MemoryScope.GPU], ids=repr)
@pytest.mark.parametrize(
    ("name", "type_"),
    {
        "l1c_evict_priority": "CacheEvictionPriority",
        "l2_evict_priority": "CacheEvictionPriority",
        "l2_prefetch_size": "L2PrefetchSize",
        "load_cache_mode": "LoadCacheMode",
        "memory_order": "MemoryOrder",
        "num_bits_per_copy": "int",
    }.items(),
)
def test_a_value_of_another_type_is_named(name: str, type_: str, value: object) -> None:
    fields = {"num_bits_per_copy": 128, "invariant": True, "l1c_evict_priority": NO_ALLOCATE, name: value}
    if (name, value) == ("l2_evict_priority", None):
        assert respell(Uint8, fields, "sm_90a") == respell(Uint8, {k: fields[k] for k in fields if k != name}, "sm_90a")
        return
    with pytest.raises(CachePolicyError, match=re.escape(f"expects {type_} for '{name}', but got {value!r}: leave it")):
        respell(Uint8, fields, "sm_90a")
    # the DSL checks the fields of its own atoms
    if name != "l2_evict_priority":
        assert respell(Uint8, {**fields, "invariant": False}, "sm_90a") == {**fields, "invariant": False}


def test_invariant_is_a_bool() -> None:
    with pytest.raises(CachePolicyError, match="expects bool for 'invariant', but got 'no': leave it"):
        respell(Uint8, {"invariant": "no"}, "sm_90a")


def test_an_error_reaches_the_user_of_make_copy_atom(tmp_path: Path) -> None:
    bad = Form(128, False, ERRORS["mode-and-l1"][0])
    with pytest.raises(Exception, match=r"a cache operator excludes an L1 eviction priority"):
        compile_forms([bad], tmp_path, "--honor-cache-policy --gpu-arch sm_90a")


def test_without_the_option_the_error_is_the_compilers_own(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="invariant_load is not allowed when the other non-default memory features"):
        compile_forms([Form(128, False, {"l1c_evict_priority": NO_ALLOCATE})], tmp_path, "--gpu-arch sm_90a")


@pytest.mark.parametrize("mode", [LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL, LoadCacheMode.STREAMING])
@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize(("bits", "target"), [(8, "sm_80"), (128, "sm_90a"), (256, "sm_100a")])
def test_the_compiler_refuses_what_the_pass_has_not_seen(
    mode: LoadCacheMode, hinted: bool, bits: int, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cute_cache_policy.options.passes_for", lambda trace, census: [])
    fields: dict[str, Any] = {"load_cache_mode": mode, "l2_prefetch_size": L2PrefetchSize.SIZE_64B}
    with pytest.raises(Exception, match=r"PTX assembly failed|NVVM backend compilation failed"):
        compile_forms([Form(bits, hinted, fields)], tmp_path, f"--honor-cache-policy --gpu-arch {target}")


def test_the_compile_that_asks_is_the_one_that_gets(tmp_path: Path) -> None:
    """The option goes with its compile: the next one without it is stock again, after success and after failure."""
    good, bad = (Form(128, False, {"l1c_evict_priority": NO_ALLOCATE, **more}) for more in ({}, ERRORS["last-use"][0]))
    for form in (good, bad):
        try:
            compile_forms([form], tmp_path, "--honor-cache-policy --gpu-arch sm_90a")
        except Exception:  # noqa: BLE001 - the point is what comes after
            assert form is bad
        with pytest.raises(TypeError, match="invariant_load is not allowed"):
            compile_forms([good], tmp_path, "--gpu-arch sm_90a")


IGNORED: dict[str, tuple[Any, dict[str, Any]]] = {
    "universal": (CopyUniversalOp(), {"l1c_evict_priority": NO_ALLOCATE}),
    "universal-invariant": (CopyUniversalOp(), {"invariant": True}),
    "universal-prefetch": (CopyUniversalOp(), {"l2_prefetch_size": L2PrefetchSize.SIZE_64B}),
    "async": (CopyG2SOp(), {"l1c_evict_priority": NO_ALLOCATE}),
    "shared": (CopyS2ROp(), {"load_cache_mode": LoadCacheMode.GLOBAL}),
    "store": (CopyR2GOp(), {"l2_prefetch_size": L2PrefetchSize.SIZE_64B}),
    "l2": (CopyR2GOp(), {"l2_evict_priority": CacheEvictionPriority.EVICT_LAST}),
}


@cute.jit
def make_atom(op: cutlass.Constexpr, fields: cutlass.Constexpr):
    cute.make_copy_atom(op, Float32, num_bits_per_copy=128, **fields)


@pytest.mark.filterwarnings(r"ignore:\s*.*CopyUniversalOp")
@pytest.mark.parametrize("name", IGNORED)
def test_verify_refuses_what_an_atom_ignores(name: str) -> None:
    op, fields = IGNORED[name]
    ((field, value),) = fields.items()
    own = f"expects qualifiers that '{type(op).__name__}' has, but got {field}={value}: it has no effect"
    # later releases refuse some themselves
    theirs = f"does not accept `{field}`|unexpected keyword argument '{field}'"
    with pytest.raises(Exception, match=f"{re.escape(own)}|{theirs}"):
        cute.compile(make_atom, op, fields, options="--gpu-arch sm_90a --verify-cache-policy")


@pytest.mark.filterwarnings(r"ignore:\s*.*CopyUniversalOp")
@pytest.mark.parametrize(
    ("op", "fields"),
    [
        (CopyUniversalOp(), {"l1c_evict_priority": CacheEvictionPriority.EVICT_NORMAL, "invariant": False}),
        (CopyR2GOp(), {"l1c_evict_priority": NO_ALLOCATE, "store_cache_mode": StoreCacheMode.STREAMING}),
        (CopyG2ROp(), {"l1c_evict_priority": NO_ALLOCATE, "invariant": True, "l2_evict_priority": None}),
        (CopyG2SOp(), {"cache_mode": LoadCacheMode.GLOBAL}),
    ],
    ids=["defaults", "store", "load", "async"],
)
def test_verify_takes_what_an_atom_has(op: Any, fields: dict[str, Any]) -> None:
    cute.compile(make_atom, op, fields, options="--gpu-arch sm_90a --honor-cache-policy --verify-cache-policy")


@pytest.mark.filterwarnings(r"ignore:\s*.*CopyUniversalOp")
def test_without_verify_an_ignored_field_is_the_dsls_business() -> None:
    cute.compile(make_atom, CopyUniversalOp(), {"invariant": True}, options="--gpu-arch sm_90a --honor-cache-policy")
