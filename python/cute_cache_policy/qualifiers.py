"""Invariant copy atoms with load qualifiers: a spelling for what the type of an atom has no room for.

The compiler has atom types with `invariant = true`, and atom types with an L1 eviction priority, an L2 prefetch size or
a cache mode, but none with both, and no word at all for a static L2 eviction priority. While the option is on,
`cute.make_copy_atom` therefore makes an atom type that says all of it in words that a load cannot otherwise use:

    mem_order = release, acq_rel or sc    the load is non-coherent, and has no cache operator, `.cg` or `.cs`
    mem_scope = cluster, gpu or sys       the static L2 priority is evict_normal, evict_first or evict_last

    !cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = release l1_cache_evict_priority = no_allocate>
    !cute_nvgpu.atom.g2r<f32 copy_bits = 256 mem_order = acq_rel mem_scope = gpu l2_prefetch_size = size_128b>

A type goes wherever the atom goes, through tiled copies, control flow and kernel arguments, and two atoms that differ
cannot meet in one value. And PTX has no load with any of these orders (PTX ISA 9.7.9.8): should such an atom ever get
past the passes, the compiler emits `ld.release` and its assembler refuses it. Nothing is lost in silence.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from cutlass.cute.nvgpu import CacheEvictionPriority, L2PrefetchSize, LoadCacheMode, MemoryOrder, MemoryScope

from .diagnostics import CachePolicyError
from .ptx import CacheOperator, GlobalLoad, L1Priority, L2Priority, PrefetchSize, Target, load_shape

__all__ = ["is_qualified", "refuse_ignored", "respell", "static_l2_priority", "without_spelling"]

#: What `mem_order` stands for.
_COP: dict[MemoryOrder, CacheOperator | None] = {
    MemoryOrder.RELEASE: None,
    MemoryOrder.ACQ_REL: CacheOperator.CG,
    MemoryOrder.SC: CacheOperator.CS,
}

#: What `mem_scope` stands for beside such an order.
_L2: dict[MemoryScope, L2Priority | None] = {
    MemoryScope.CTA: None,
    MemoryScope.CLUSTER: L2Priority.EVICT_NORMAL,
    MemoryScope.GPU: L2Priority.EVICT_FIRST,
    MemoryScope.SYS: L2Priority.EVICT_LAST,
}

#: The cache operators by their names in the DSL. ALWAYS is its default and left out.
_COP_OF_MODE: dict[LoadCacheMode, CacheOperator | None] = {
    LoadCacheMode.ALWAYS: None,
    LoadCacheMode.GLOBAL: CacheOperator.CG,
    LoadCacheMode.STREAMING: CacheOperator.CS,
    LoadCacheMode.LAST_USE: CacheOperator.LU,
    LoadCacheMode.NONE: CacheOperator.CV,
}

_PREFETCH: dict[L2PrefetchSize, PrefetchSize | None] = {
    L2PrefetchSize.NONE: None,
    L2PrefetchSize.SIZE_64B: PrefetchSize.B64,
    L2PrefetchSize.SIZE_128B: PrefetchSize.B128,
    L2PrefetchSize.SIZE_256B: PrefetchSize.B256,
}

#: What the fields that are looked at hold. The DSL has the same types, and takes no None either.
_TYPES: dict[str, type] = {
    "invariant": bool,
    "l1c_evict_priority": CacheEvictionPriority,
    "l2_evict_priority": CacheEvictionPriority,
    "l2_prefetch_size": L2PrefetchSize,
    "load_cache_mode": LoadCacheMode,
    "memory_order": MemoryOrder,
    "num_bits_per_copy": int,
}

_SPELLING = re.compile(r" mem_order = (release|acq_rel|sc)\b(?: mem_scope = (\w+))?([^<>]*)")


def is_qualified(type_text: str) -> bool:
    """Whether the type of an atom or tiled copy is one that `respell` asked for."""
    return _SPELLING.search(type_text) is not None


def static_l2_priority(type_text: str) -> L2Priority | None:
    """The static L2 priority that the type of an atom or tiled copy asks for."""
    match = _SPELLING.search(type_text)
    return _L2[MemoryScope[(match[2] or "cta").upper()]] if match else None


def without_spelling(type_text: str) -> str:
    """The type that the compiler can expand: a coherent load with the same qualifiers, save a static L2 priority."""

    def plain(match: re.Match[str]) -> str:
        cop = _COP[MemoryOrder[match[1].upper()]]
        modes = [mode for mode, operator in _COP_OF_MODE.items() if cop is operator is not None]
        return match[3] + "".join(f" load_cache_mode = {mode.name.lower()}" for mode in modes)

    return _SPELLING.sub(plain, type_text, count=1)


def respell(element: Any, fields: dict[str, Any], gpu_arch: str) -> dict[str, Any]:
    """The fields to make a G2R copy atom with, for the fields that the user gave to `cute.make_copy_atom`.

    `l2_evict_priority`, a `CacheEvictionPriority`, is the field that the DSL does not have: the static L2 priority.
    None stands for none. Fields of atoms that are not invariant are for the DSL to check.

    Raises:
        CachePolicyError: if PTX has no load with these qualifiers, it names the rule; or if a field is of a wrong type.
    """
    fields = dict(fields)
    order = fields.get("memory_order", MemoryOrder.WEAK)
    l2 = fields.pop("l2_evict_priority", None)
    if not fields.get("invariant"):
        if l2 is not None:
            raise _error("invariant=True with 'l2_evict_priority'", l2, "use a cache policy")
        if order in tuple(_COP):
            raise _error("a memory order that loads have", order, "use RELAXED or ACQUIRE (PTX ISA 9.7.9.8)")
        return fields
    _check_types(fields if l2 is None else {**fields, "l2_evict_priority": l2})
    load = _load(element, fields, l2)
    if order is MemoryOrder.WEAK and not (load.cop or load.l1 or load.l2 or load.prefetch):
        # the compiler has this one
        return fields
    if order is not MemoryOrder.WEAK:
        rule = "'ld.global.nc' is a weak load (PTX ISA 9.7.9.9), leave out invariant=True for an ordered one"
        raise _error("MemoryOrder.WEAK with invariant=True", order, rule)
    target = Target.parse(gpu_arch)
    if problems := load.pieces(target)[0].violations(target):
        raise _error("qualifiers of one load", f"{load.mnemonic} on {target}", "; ".join(problems))
    for name in ("memory_order", "invariant", "load_cache_mode"):
        fields.pop(name, None)
    if others := fields.keys() - {"num_bits_per_copy", "l1c_evict_priority", "l2_prefetch_size"}:
        raise _error("only qualifiers with invariant=True", ", ".join(sorted(others)), "leave them out")
    fields["memory_order"] = next(name for name, operator in _COP.items() if operator is load.cop)
    fields["memory_scope"] = next(name for name, priority in _L2.items() if priority is load.l2)
    return fields


def refuse_ignored(op: str, fields: dict[str, Any]) -> None:
    """Raise a CachePolicyError for fields that the DSL drops while it makes an atom of `op`."""
    given = ", ".join(f"{name}={value}" for name, value in fields.items())
    rule = "it has no effect, leave it out or use 'CopyG2ROp' or 'CopyR2GOp'"
    raise _error(f"qualifiers that '{op}' has", given, rule)


def _check_types(fields: dict[str, Any]) -> None:
    for name, type_ in _TYPES.items():
        if name in fields and not isinstance(fields[name], type_):
            raise _error(f"{type_.__name__} for '{name}'", repr(fields[name]), "leave it out for the default")


def _load(element: Any, fields: dict[str, Any], l2: CacheEvictionPriority | None) -> GlobalLoad:
    """The load that an atom with these fields executes. One without a width is taken for narrow."""
    l1 = fields.get("l1c_evict_priority", CacheEvictionPriority.EVICT_NORMAL)
    prefetch = fields.get("l2_prefetch_size", L2PrefetchSize.NONE)
    if prefetch not in _PREFETCH:
        raise _error("an L2 prefetch size of 64, 128 or 256 bytes", prefetch, "PTX has no other (PTX ISA 9.7.9.9)")
    if l2 is not None and l2.name not in L2Priority.__members__:
        raise _error("an L2 priority as 'l2_evict_priority'", l2, "only L1 has it (PTX ISA 9.7.9.2)")
    return dataclasses.replace(
        load_shape(fields.get("num_bits_per_copy") or 32, element.width),
        cop=_COP_OF_MODE[fields.get("load_cache_mode", LoadCacheMode.ALWAYS)],
        l1=None if l1 is CacheEvictionPriority.EVICT_NORMAL else L1Priority[l1.name],
        l2=None if l2 is None else L2Priority[l2.name],
        prefetch=_PREFETCH[prefetch],
    )


def _error(expected: str, got: object, rule: str) -> CachePolicyError:
    return CachePolicyError(f"'make_copy_atom' expects {expected}, but got {got}: {rule}")
