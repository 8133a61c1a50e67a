"""Cache policies as values: what `cache_policy=` of a copy takes, without a line of PTX.

    stream = cute_cache_policy.evict_first()
    table = cute_cache_policy.fractional(EVICT_LAST, 0.5)
    cute.copy(atom, src, fragment, cache_policy=stream)

Every function gives an `Int64` and works in kernels and device functions, whatever the compile options. A policy for
all accesses is a constant: `createpolicy` would yield the same number, but with instructions that ptxas does not fold.
Any other is one `createpolicy` (PTX ISA 9.7.9.18). It is inline asm because no NVVM op in all supported releases lowers
to it. It has no side effects, so that the compiler merges equal ones, and stands in front of every loop and branch that
what it depends on stands in front of: the compiler does not move it out of all of them.
"""

from __future__ import annotations

import struct
from typing import Any

from cutlass import Float32, Int32, Int64
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm
from cutlass.cute.nvgpu import CacheEvictionPriority
from cutlass.cute.typing import AddressSpace, Pointer
from cutlass.cutlass_dsl import dsl_user_op

from .bindings import FUNCTION_OPS
from .diagnostics import CachePolicyError
from .ptx import CONSTANT_POLICIES, CreatePolicy, L2Priority, Target

__all__ = [
    "EVICT_FIRST",
    "EVICT_LAST",
    "EVICT_NORMAL",
    "EVICT_UNCHANGED",
    "as_value",
    "evict_first",
    "evict_last",
    "evict_normal",
    "evict_unchanged",
    "fractional",
    "range",
]

_CONSTANTS = {priority: Int64(policy) for priority, policy in CONSTANT_POLICIES.items()}

EVICT_FIRST = _CONSTANTS[L2Priority.EVICT_FIRST]
EVICT_LAST = _CONSTANTS[L2Priority.EVICT_LAST]
EVICT_NORMAL = _CONSTANTS[L2Priority.EVICT_NORMAL]
EVICT_UNCHANGED = _CONSTANTS[L2Priority.EVICT_UNCHANGED]

#: The earliest target with cache policies. Whether the target of a compile is later is for the copy to check.
_TARGET = Target(80)


def evict_first() -> Int64:
    """The policy for data that is read once: its lines are the first to go."""
    return EVICT_FIRST


def evict_last() -> Int64:
    """The policy for data that is read again and again: its lines are the last to go."""
    return EVICT_LAST


def evict_normal() -> Int64:
    """The policy of an access without one."""
    return EVICT_NORMAL


def evict_unchanged() -> Int64:
    """The policy that leaves the priority of a line in the cache as it is."""
    return EVICT_UNCHANGED


@dsl_user_op
def fractional(
    primary: CacheEvictionPriority | Int64,
    fraction: float | Float32 = 1.0,
    secondary: CacheEvictionPriority | Int64 | None = None,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Int64:
    """The policy that gives `primary` to a share of the accesses, chosen by hardware, and `secondary` to the others.

    Args:
        primary: EVICT_FIRST, EVICT_LAST, EVICT_NORMAL or EVICT_UNCHANGED, of this package or of
            `cutlass.cute.nvgpu.CacheEvictionPriority`.
        fraction: the share, more than 0 and at most 1; a number known at compile time is checked.
        secondary: EVICT_FIRST or EVICT_UNCHANGED, which is the default.

    Raises:
        CachePolicyError: if PTX has no such policy; it names the rule.
    """
    share = _number(fraction)
    if share is not None and abs(share) < 2**-149:
        # what PTX would read as zero
        share = 0.0
    form = CreatePolicy(_priority(primary), None if secondary is None else _priority(secondary), fraction=share)
    _check(form)
    if share == 1.0:
        return _CONSTANTS[form.primary]
    if share is not None:
        return _emit(form, [f"0f{struct.pack('>f', share).hex()}"], [], "", loc, ip)
    return _emit(form, ["$1"], [_value(fraction, Float32, loc, ip)], "f", loc, ip)


@dsl_user_op
def range(
    ptr: Pointer,
    primary: CacheEvictionPriority | Int64,
    secondary: CacheEvictionPriority | Int64 | None,
    primary_size: int | Int32,
    total_size: int | Int32,
    *,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Int64:
    """The policy that gives `primary` to accesses of the `primary_size` bytes from `ptr` on.

    Accesses of the bytes around them, up to `total_size` bytes in all from `ptr` on and as many in front of it, get
    `secondary`; what accesses further away get is unspecified.

    Args:
        ptr: a pointer to global memory, such as `tensor.iterator`.
        primary: EVICT_FIRST, EVICT_LAST, EVICT_NORMAL or EVICT_UNCHANGED, of this package or of
            `cutlass.cute.nvgpu.CacheEvictionPriority`.
        secondary: EVICT_FIRST, EVICT_UNCHANGED, or None for the latter.
        primary_size: bytes, at most `total_size`; a number known at compile time is checked.
        total_size: bytes, less than 4 GiB.

    Raises:
        CachePolicyError: if PTX has no such policy; it names the rule.
    """
    sizes = (_number(primary_size), _number(total_size))
    form = CreatePolicy(_priority(primary), None if secondary is None else _priority(secondary), sizes=sizes)
    _check(form)
    if not isinstance(ptr, Pointer) or ptr.memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise CachePolicyError(f"a range expects a pointer to global memory, as 'tensor.iterator' is, but got {ptr!r}")
    dynamic = [_value(size, Int32, loc, ip) for size, known in zip((primary_size, total_size), sizes) if known is None]
    ip = ip or _outside_of_regions([ptr.value, *dynamic])
    values = [ptr.toint(loc=loc, ip=ip).ir_value(loc=loc, ip=ip), *dynamic]
    registers = iter(("$2", "$3"))
    texts = ["$1", *(next(registers) if known is None else str(known) for known in sizes)]
    return _emit(form, texts, values, ",".join(["l", *"r" * len(dynamic)]), loc, ip)


def as_value(policy: Any) -> Any:
    """The Int64 for what a `cache_policy=` accepts: one, a Python int, or a `CacheEvictionPriority`.

    Raises:
        CachePolicyError: for anything else, a number that is no 64-bit policy, or a priority that L2 does not have.
    """
    if isinstance(policy, CacheEvictionPriority):
        return _CONSTANTS[_priority(policy)]
    if isinstance(policy, int) and not isinstance(policy, bool):
        if not 0 <= policy < 2**64:
            raise CachePolicyError(f"'cache_policy' expects 64 bits, but got {policy:#x}")
        return Int64(policy - 2**64 if policy >= 2**63 else policy)
    if not isinstance(policy, Int64):
        raise CachePolicyError(f"'cache_policy' expects Int64, int or CacheEvictionPriority, but got {policy!r}")
    return policy


def _priority(priority: CacheEvictionPriority | Int64) -> L2Priority:
    """The priority that a member of the DSL's enumeration names, or that one of the constants gives to all accesses."""
    for known, constant in _CONSTANTS.items():
        if priority is constant or getattr(priority, "name", None) == known.name:
            return known
    names, name = ", ".join(L2Priority.__members__), getattr(priority, "name", repr(priority))
    raise CachePolicyError(f"a cache policy expects one of {names}, but got {name} (PTX ISA 9.7.9.18)")


def _check(form: CreatePolicy) -> None:
    if problems := form.violations(_TARGET):
        inputs = form.fraction if form.sizes is None else form.sizes
        rules = "; ".join(problems)
        raise CachePolicyError(f"a cache policy expects what PTX has, but got '{form.mnemonic}' of {inputs}: {rules}")


def _number(number: Any) -> Any:
    """`number` if it is known at compile time, otherwise None."""
    value = getattr(number, "value", number)
    if not isinstance(value, (int, float, ir.Value)):
        raise CachePolicyError(f"a cache policy expects a number, but got {number!r}")
    return None if isinstance(value, ir.Value) else value


def _value(number: Any, type_: Any, loc: ir.Location | None, ip: ir.InsertionPoint | None) -> ir.Value:
    return type_(number).ir_value(loc=loc, ip=ip)


def _outside_of_regions(values: list[ir.Value]) -> ir.InsertionPoint:
    """In front of the outermost loop or branch around the code being traced that `values` are defined outside of."""
    homes = [owner if isinstance(owner := value.owner, ir.Block) else owner.operation.block for value in values]
    point = ir.InsertionPoint.current
    while point.block not in homes and (around := point.block.owner.operation).name not in FUNCTION_OPS:
        point = ir.InsertionPoint(around)
    return point


def _emit(
    form: CreatePolicy,
    inputs: list[str],
    values: list[ir.Value],
    constraints: str,
    loc: ir.Location | None,
    ip: ir.InsertionPoint | None,
) -> Int64:
    ip = ip or _outside_of_regions(values)
    text = form.text("$0", *inputs)
    i64 = ir.IntegerType.get_signless(64)
    return Int64(llvm.inline_asm(i64, values, text, ",".join(filter(None, ["=l", constraints])), loc=loc, ip=ip))
