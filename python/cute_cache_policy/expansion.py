"""Borrowing the compiler's own expansion of a copy.

`cute-expand-ops` turns `cute.copy`, and accesses to elements, into loads and stores: it walks the layouts, applies
predicates, picks vector widths, handles sub-byte types. None of that is done again here. An op is expanded *alone*, as
the body of a scratch function whose arguments are its operands; a caller looks at the loads in it, may replace them,
and inlines the result in front of the original op.
"""

from __future__ import annotations

import functools
import math
import re

from cutlass._mlir import ir
from cutlass._mlir.passmanager import PassManager

from .atoms import GET_VALUE, SET_VALUE, AtomType, policy_field
from .bindings import attributes, enclosing, operands, raw, results, type_text, walk

__all__ = ["ACCESSES", "Expander", "Expansion", "trips"]

_PIPELINE = "func.func(cute-expand-ops)"

#: The ops that `cute-expand-ops` accesses memory with.
LOADS = frozenset({"llvm.load", "nvvm.load.ext"})
STORES = frozenset({"llvm.store", "nvvm.store.ext"})

#: With those that passes put in their place.
ACCESSES = LOADS | STORES | {"llvm.inline_asm", "nvvm.cp.async.shared.global"}


class Expansion:
    """The expansion of one copy, as a function of the copy's operands and of one more value: a cache policy (i64).

    Args:
        copy: a copy op; it stays as it is.
        atom_type: the type to give the copy's atom, or None for the one it has.
        sets_policy: whether the copy's atom is to be defined by an `atom.set_value<cache_policy>`, as after
            `cute.copy(..., cache_policy=p)`, rather than be an opaque value. Some compilers only look at that op.
        pipeline: the pass manager that expands.

    Attributes:
        loads: the loads of global memory in the expansion, in order.
        policy: the policy, as a value in the expansion.
        keeps_policy: whether the compiler itself hands the atom's policy on to an access.

    Raises:
        MLIRError: if the copy is invalid, or the compiler cannot expand it.
    """

    def __init__(self, copy: ir.Operation, atom_type: ir.Type | None, sets_policy: bool, pipeline: PassManager) -> None:
        # the DSL verifies a module behind us, when the copy is gone; what it would refuse expands to anything
        copy.verify()
        location = copy.location
        types = [value.type for value in operands(copy)]
        types[0] = atom_type or types[0]
        types.append(ir.IntegerType.get_signless(64))
        type_ = ir.FunctionType.get(types, [value.type for value in results(copy)])
        named = {"sym_name": ir.StringAttr.get("expansion"), "function_type": ir.TypeAttr.get(type_)}
        # not the classes of the dialects, which take three times as long: a kernel may have but one copy
        self._function = ir.Operation.create("func.func", attributes=named, regions=1, loc=location, ip=False)
        body = self._function.regions[0].blocks.append(*types, arg_locs=[location] * len(types))
        arguments = raw(body.arguments)
        self.policy = arguments.pop()
        with ir.InsertionPoint(body), location:
            if sets_policy:
                field = {"field": policy_field(AtomType.of(types[0]))}
                inputs = [arguments[0], self.policy]
                arguments[0] = results(ir.Operation.create(SET_VALUE, [types[0]], inputs, field))[0]
            alone = copy.clone()
            for index, argument in enumerate(arguments):
                alone.operands[index] = argument
            ir.Operation.create("func.return", operands=results(alone))
        pipeline.run(self._function)
        self.loads: list[ir.Operation] = []
        fields: list[ir.Operation] = []
        kinds = dict.fromkeys(LOADS, self.loads) | dict.fromkeys((GET_VALUE, SET_VALUE), fields)
        for op in walk(self._function):
            kind = kinds.get(op.name)
            if kind is not None and (kind is fields or _touches_global_memory(op)):
                kind.append(op)
        self.keeps_policy = self._take_policy_from_argument(fields)

    def _take_policy_from_argument(self, accesses: list[ir.Operation]) -> bool:
        """Let the expansion read the policy from its argument instead of out of the atom. Returns whether it does."""
        used = False
        for op in reversed(accesses):
            if "cache_policy" in str(op.attributes["field"]):
                value = results(op)[0]
                if op.name == GET_VALUE:
                    used |= any(True for _ in value.uses)
                    value.replace_all_uses_with(self.policy)
                op.erase()
        return used

    def accesses(self) -> list[tuple[ir.Operation, int]]:
        """Every access of global memory as it stands in the expansion now, and how often the expansion executes it.

        Loops of the expansion are unrolled by the compiler; one with a bound unknown at compile time counts once.
        """
        found = []
        for op in walk(self._function):
            if op.name in ACCESSES and _touches_global_memory(op):
                found.append((op, math.prod(trips(loop) for loop in enclosing(op) if loop.name == "scf.for")))
        return found

    def inline(self, copy: ir.Operation, policy: ir.Value | None) -> None:
        """Insert the expansion in front of `copy`, on its operands and `policy` (None if unused), at its location.

        What uses the results of `copy`, if it has any, then uses those of the expansion.
        """
        instance = self._function.clone(ip=False)
        location = copy.location
        if location != instance.location:
            for op in walk(instance):
                op.location = location
        body = instance.regions[0].blocks[0]
        for argument, value in zip(raw(body.arguments), [*operands(copy), *([policy] if policy else [])]):
            argument.replace_all_uses_with(value)
        *ops, terminator = list(body.operations)
        for op in ops:
            op.move_before(copy)
        for old, new in zip(results(copy), operands(terminator.operation)):
            old.replace_all_uses_with(new)


def _touches_global_memory(op: ir.Operation) -> bool:
    return any(type_text(value.type) == "!llvm.ptr<1>" for value in operands(op))


def trips(loop: ir.Operation) -> int:
    """How often a loop from 0 in steps of 1 runs: `cute-expand-ops` makes no others."""
    bound = operands(loop)[1].owner
    text = str(bound if isinstance(bound, ir.Block) or not len(bound.operands) else operands(bound)[0].type)
    match = re.search(r'constant (\d+)|int_tuple<"(\d+)">', text)
    return int(match[1] or match[2]) if match else 1


class Expander:
    """Expands the copies of one context; copies with the same signature share one `Expansion`.

    The signature is all that the expansion depends on: the op with its attributes and the types of its operands.
    """

    def __init__(self) -> None:
        self._expansions: dict[tuple[object, ...], Expansion] = {}

    @functools.cached_property
    def _pipeline(self) -> PassManager:
        pipeline = PassManager.parse(_PIPELINE)
        pipeline.enable_verifier(False)
        return pipeline

    def expand(
        self, copy: ir.Operation, atom_type: ir.Type | None = None, sets_policy: bool = True
    ) -> tuple[Expansion, bool]:
        """The expansion of `copy` (see `Expansion`), and whether it was made just now."""
        types = (value.type for value in operands(copy))
        # types and attributes are unique in their context, and much faster to hash than to print
        signature = (copy.name, atom_type, sets_policy, *attributes(copy).items(), *types)
        known = self._expansions.get(signature)
        if known is not None:
            return known, False
        made = self._expansions[signature] = Expansion(copy, atom_type, sets_policy, self._pipeline)
        return made, True
