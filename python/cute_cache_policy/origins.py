"""Which memory an address points to, as far as a kernel tells.

`AddressFlow.origins` follows an address back to the kernel arguments that it was computed from: through views, offsets,
alignment, recasts and integer arithmetic, through `scf` control flow and calls. What is loaded from memory, returned by
a call or computed by inline assembly has no known origin.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from cutlass._mlir import ir

from .bindings import FUNCTION_OPS, attributes, defining_op, integer_constant, operands, raw, type_text
from .dataflow import CallGraph, incoming

__all__ = ["AddressFlow", "Origins", "is_address", "is_global", "is_tma"]

#: Functions that the host launches: an address that enters one is looked up in their launches, not traced further.
KERNEL_OPS = frozenset({"cuda.kernel", "lir.func", "gpu.func"})

#: Ops that make new memory, which no kernel argument points to.
ALLOCATIONS = frozenset(
    {
        "cute.copy.make_fragment",
        "cute.make_fragment_like",
        "cute.memref.alloca",
        "cute.memref.alloc_smem",
        "cute.mma.make_fragment",
        "cute_nvgpu.arch.alloc_rmem",
        "cute_nvgpu.arch.alloc_smem",
        "cute_nvgpu.arch.get_dyn_smem",
        "lir.allocate_buffer",
        "lir.static_alloc_smem",
        "lir.static_alloc_tmem",
        "llvm.alloca",
    }
)

#: Ops of the dialect `cute` whose result is read from memory. All others compute theirs.
LOADS = frozenset(
    {"cute.deref_desc_iter", "cute.load_scaled_index", "cute.memref.load", "cute.memref.load_vec", "cute.ptr.load"}
)

#: Ops of the dialect `cute` whose first operand is the address, and whose others need not be looked at.
VIEWS_OF_FIRST = frozenset(
    {
        "cute.add_offset",
        "cute.get_iter",
        "cute.group_modes",
        "cute.local_tile",
        "cute.logical_divide",
        "cute.make_view",
        "cute.recast_iter",
        "cute.slice",
    }
)

#: Ops outside the dialect `cute` that compute an address from their address operands.
VIEWS = frozenset(
    {
        "arith.select",
        "builtin.unrealized_conversion_cast",
        "cute_nvgpu.atom.make_exec_tma",
        "cute_nvgpu.atom.tma_partition",
        "lir.partition",
        "lir.ptrcast",
        "llvm.addrspacecast",
        "llvm.bitcast",
        "llvm.freeze",
        "llvm.getelementptr",
        "llvm.select",
    }
)

#: Views that start where their operand starts.
SAME_START = frozenset(
    {
        "builtin.unrealized_conversion_cast",
        "cute.coalesce",
        "cute.composition",
        "cute.derefine",
        "cute.filter",
        "cute.flat_divide",
        "cute.get_iter",
        "cute.group_modes",
        "cute.logical_divide",
        "cute.make_view",
        "cute.recast_iter",
        "cute.tiled_divide",
        "cute.zipped_divide",
        "llvm.addrspacecast",
        "llvm.bitcast",
    }
)

#: Views that start where their operand starts if all coordinates are zero.
SHIFTS = frozenset({"cute.add_offset", "cute.local_tile", "cute.slice"})

FROM_INTEGER = frozenset({"cute.inttoptr", "llvm.inttoptr"})
TO_INTEGER = frozenset({"cute.ptrtoint", "llvm.ptrtoint", "llvm.ptrtoaddr"})

#: Integer arithmetic outside the dialect `arith`.
ARITHMETIC = frozenset(
    f"llvm.{name}" for name in ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "zext", "sext", "trunc")
) | {"cute.assume", "llvm.mlir.constant", "builtin.unrealized_conversion_cast"}

SUBTRACTIONS = frozenset({"arith.subi", "llvm.sub"})

#: Arithmetic whose result holds an address if an operand does.
SUMS = SUBTRACTIONS | {
    *("arith.addi", "arith.extsi", "arith.extui", "arith.index_cast", "arith.index_castui", "arith.trunci"),
    *("llvm.add", "llvm.sext", "llvm.trunc", "llvm.zext", "cute.assume", "builtin.unrealized_conversion_cast"),
}

BITWISE_AND = frozenset({"arith.andi", "llvm.and"})
BITWISE = BITWISE_AND | {"arith.ori", "arith.xori", "llvm.or", "llvm.xor"}


def _keeps_address(op: ir.Operation) -> bool:
    """Whether an op of integers only adds an offset to an operand that holds an address.

    So do bitwise ops with a constant that leaves the upper bits: they align, or set a bit that is clear.
    """
    if op.name in BITWISE:
        constants = [constant for value in operands(op) if (constant := integer_constant(value)) is not None]
        return any((constant < 0) == (op.name in BITWISE_AND) for constant in constants)
    return op.name in SUMS


@dataclass(frozen=True)
class Origins:
    """Where an address may have come from.

    Attributes:
        arguments: the kernel arguments (or arguments of the outermost function) among its origins.
        known: whether there is no other origin.
    """

    arguments: frozenset[ir.Value]
    known: bool


@functools.lru_cache(maxsize=4096)
def _is_address_text(text: str) -> bool:
    return any(word in text for word in ("memref<", "ptr", "tma", "desc"))


@functools.lru_cache(maxsize=4096)
def _is_global_text(text: str) -> bool:
    if text.startswith(("!cute.memref<", "!cute.ptr<")):
        return ", gmem" in text or ", generic" in text
    return not text.startswith("!llvm.ptr<") or text == "!llvm.ptr<1>"


def is_address(value: ir.Value) -> bool:
    """Whether a value holds an address: a tensor in memory, a pointer, a TMA atom or descriptor."""
    return _is_address_text(type_text(value.type))


def is_tma(value: ir.Value) -> bool:
    """Whether a value is a TMA atom or descriptor: it holds the address of the tensor that it was made for."""
    return "tma" in type_text(value.type)


def is_global(value: ir.Value) -> bool:
    """Whether a value that holds an address may point to global memory."""
    return _is_global_text(type_text(value.type))


class _Holds(enum.IntEnum):
    """Whether an integer is an address and an offset. In a sum, the largest counts: the rest is an offset."""

    NEVER = 0
    #: whatever the loop holds that hands the integer on to itself
    LOOP = 1
    #: on some paths only, or a number made from an address
    SOMETIMES = 2
    ALWAYS = 3


def _merge(paths: list[_Holds]) -> _Holds:
    """What holds where paths meet."""
    distinct = set(paths) - {_Holds.LOOP}
    if len(distinct) > 1:
        return _Holds.SOMETIMES
    return distinct.pop() if distinct else _Holds.LOOP


class AddressFlow:
    """Traces the addresses of one module."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._origins: dict[ir.Value, Origins] = {}
        self._launched: dict[ir.Value, list[ir.Value]] = {}
        self._same: dict[tuple[ir.Value, ir.Value], bool] = {}

    def origins(self, address: ir.Value) -> Origins:
        """The kernel arguments that an address may have been computed from."""
        found = self._origins.get(address)
        if found is None:
            found = self._origins[address] = self._trace(address)
        return found

    def _trace(self, address: ir.Value) -> Origins:
        arguments: set[ir.Value] = set()
        known = True
        seen: set[ir.Value] = set()
        pending = [address]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if self._enters(value):
                arguments.add(value)
                continue
            edges = incoming(value, self._calls)
            if edges is not None:
                known &= bool(edges)
                pending += [edge.value for edge in edges]
                continue
            op = value.owner.operation
            name = op.name
            if name in ALLOCATIONS:
                continue
            if name in VIEWS_OF_FIRST:
                sources, exact = operands(op)[:1], True
            elif name in FROM_INTEGER:
                sources, exact = self._trace_integer(operands(op)[0])
            elif not is_address(value):
                # what inline assembly takes for an address
                sources, exact = self._trace_integer(value)
            else:
                sources = [operand for operand in operands(op) if is_address(operand)]
                exact = bool(sources) and (name in VIEWS or (name.startswith("cute.") and name not in LOADS))
                if name in LOADS or name == "llvm.load":
                    sources = []
            known &= exact
            pending += sources
        return Origins(frozenset(arguments), known)

    def _enters(self, value: ir.Value) -> bool:
        """Whether a value enters a kernel, or a function that nothing in the module calls."""
        block = value.owner
        if not isinstance(block, ir.Block):
            return False
        function = block.owner.operation
        name = function.name
        if name not in FUNCTION_OPS or block != function.regions[0].blocks[0]:
            return False
        return name in KERNEL_OPS or not self._calls.callers(function)

    def _trace_integer(self, integer: ir.Value) -> tuple[list[ir.Value], bool]:
        """The addresses that an integer was computed from, and whether it is sure that these are all.

        What is added to an address is an offset, wherever it came from. Without any address the integer itself is one:
        then its origins are the kernel arguments in it.
        """
        addresses: list[ir.Value] = []
        entered: list[ir.Value] = []
        loaded = False
        held: dict[ir.Value, _Holds] = {}

        def visit(value: ir.Value) -> _Holds:
            if value not in held:
                held[value] = _Holds.LOOP
                held[value] = look(value)
            return held[value]

        def look(value: ir.Value) -> _Holds:
            nonlocal loaded
            if self._enters(value):
                entered.append(value)
                return _Holds.NEVER
            edges = incoming(value, self._calls)
            if edges is not None:
                return _merge([visit(edge.value) for edge in edges])
            op = value.owner.operation
            if op.name in TO_INTEGER:
                addresses.append(operands(op)[0])
                return _Holds.ALWAYS
            if op.name == "arith.select":
                return _merge([visit(operand) for operand in operands(op)[1:]])
            if op.name in ARITHMETIC or op.name.startswith("arith."):
                held_by = [visit(operand) for operand in operands(op)]
                if (op.name in SUBTRACTIONS and held_by[1]) or not _keeps_address(op):
                    # a distance, or a part of an address
                    return _Holds.SOMETIMES if any(held_by) else _Holds.NEVER
                return max(held_by)
            loaded = True
            return _Holds.NEVER

        try:
            holds = visit(integer)
        except RecursionError:
            # a longer computation than any address takes
            return [], False
        if addresses:
            return addresses, holds is _Holds.ALWAYS
        return entered, bool(entered) and not loaded

    def compared(self, subtraction: ir.Operation) -> set[ir.Value]:
        """The arguments whose addresses a subtraction compares; none if it has an address on one side at most."""
        left, right = (list(filter(is_address, self._trace_integer(side)[0])) for side in operands(subtraction))
        addresses = left + right if left and right else []
        return {argument for address in addresses for argument in self.origins(address).arguments}

    def same_memory(self, one: ir.Value, other: ir.Value) -> bool:
        """Whether two arguments are the same memory: they are one, or some launch passes the same tensor for both.

        A TMA atom is the same memory as every tensor with an origin in common: kernels take the atom of a tensor beside
        the tensor.
        """
        if one == other:
            return True
        known = self._same.get((one, other))
        if known is None:
            known = self._same[one, other] = self._passed_alike(one, other, self._is_same)
        return known

    def may_overlap(self, argument: ir.Value) -> set[ir.Value]:
        """The arguments of a kernel that some launch in the module passes a part of the same tensor for."""

        def share(mine: ir.Value, its: ir.Value) -> bool:
            return bool(self.origins(mine).arguments & self.origins(its).arguments)

        block = argument.owner
        others = raw(block.arguments) if isinstance(block, ir.Block) else []
        return {argument} | {o for o in others if is_address(o) and self._passed_alike(argument, o, share)}

    def _passed_alike(self, one: ir.Value, other: ir.Value, alike: Callable[[ir.Value, ir.Value], bool]) -> bool:
        """Whether some launch passes values for two arguments of one kernel that are alike."""
        block = one.owner
        if not isinstance(block, ir.Block) or block.owner.operation.name not in KERNEL_OPS or other.owner != block:
            return False
        return any(map(alike, self._passed(one), self._passed(other)))

    def _passed(self, argument: ir.Value) -> list[ir.Value]:
        """What each launch passes for a kernel argument."""
        found = self._launched.get(argument)
        if found is None:
            found = self._launched[argument] = [edge.value for edge in incoming(argument, self._calls) or ()]
        return found

    def _is_same(self, mine: ir.Value, its: ir.Value) -> bool:
        if _same_value(mine, its):
            return True
        return (is_tma(mine) or is_tma(its)) and bool(self.origins(mine).arguments & self.origins(its).arguments)


def _start(value: ir.Value) -> ir.Value:
    """The value furthest back that starts at the same address as `value`."""
    while (op := defining_op(value)) is not None:
        if op.name in SAME_START or (op.name in SHIFTS and _shifts_by_nothing(op)):
            sources = [operand for operand in operands(op) if is_address(operand)]
        elif op.name in FROM_INTEGER | TO_INTEGER or op.name == "cute.assume":
            sources = operands(op)
        else:
            break
        if len(sources) != 1:
            break
        value = sources[0]
    return value


def _shifts_by_nothing(op: ir.Operation) -> bool:
    shifts = [type_text(operand.type) for operand in operands(op)[1:]]
    return all(re.fullmatch(r'!cute\.(coord|int_tuple)<"[(),_0]*">|!cute\.tile<.*', text) for text in shifts)


def _same_value(one: ir.Value, other: ir.Value) -> bool:
    """Whether two values are the same address, or computed by the same ops from the same values."""
    seen: set[tuple[ir.Value, ir.Value]] = set()
    pending = [(one, other)]
    while pending:
        mine, its = map(_start, pending.pop())
        if mine == its or (mine, its) in seen:
            continue
        if not _computed_alike(mine, its):
            return False
        seen.add((mine, its))
        pending += zip(operands(mine.owner.operation), operands(its.owner.operation))
    return True


def _computed_alike(one: ir.Value, other: ir.Value) -> bool:
    """Whether two values are results of ops that differ in their operands at most."""
    mine, its = defining_op(one), defining_op(other)
    if mine is None or its is None or one.type != other.type:
        return False
    # what is read or allocated differs from one op to the next
    pure = mine.name.startswith(("arith.", "cute.")) and mine.name not in LOADS | ALLOCATIONS
    numbers = (ir.OpResult(value).result_number for value in (one, other))
    return (
        pure
        and mine.name == its.name
        and len(set(numbers)) == 1
        and len(mine.operands) == len(its.operands)
        and attributes(mine) == attributes(its)
    )
