"""`verify-cache-policy`: tell where a copy would lose the cache policy or the cache mode it was given.

    error: 'cute.copy' op expects its cache policy to reach memory, but got a 'g2r' atom that drops it: compile with ...

Input: a module as CuTe DSL traces it, in front of the compiler's `cute-expand-ops`; after the passes that repair
copies, if those are to run.

Promised: an error for each `cute.copy` and `cute.copy_atom_call` whose atom carries a cache policy on some path and
that the compiler expands into accesses without it. No atom is known to be bad: the compiler expands the copy alone,
and its answer counts. A policy that an atom has no field for is lost by definition (see `atoms.record_policy`). Also an
error for each copy with a cache mode or memory order that PTX does not have. With the option `warn`, policies that are
lost are warnings, and nothing is an error.

Left untouched: everything. Copies through tensor maps (TMA) keep their policy in an operand of the instruction, and are
not looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutlass._mlir import ir

from cute_cache_policy.atoms import (
    COPY_OPS,
    AtomType,
    PolicyFlow,
    compiler_sees_policy,
    copy_atom,
    kind_with_policy,
    policy_setter,
    records_policy,
)
from cute_cache_policy.bindings import memory_space, operands, walk
from cute_cache_policy.dataflow import CallGraph
from cute_cache_policy.diagnostics import PassFailure, error, warn
from cute_cache_policy.expansion import Expander
from cute_cache_policy.pass_manager import Pass

#: What PTX has for a parameter of an atom, by the kind of the atom (PTX ISA 9.7.9.25.3.1 and 9.7.9.8). The compiler
#: drops the rest on its way from the expansion to PTX, where it cannot be asked.
HAS_EFFECT = {
    ("simt_async_copy", "cache"): ("always", "global"),
    ("g2r", "mem_order"): ("weak", "relaxed", "acquire", "volatile", "mmio"),
}

HONOR = "compile with --honor-cache-policy"


def drops_policy(op: ir.Operation, atom: AtomType) -> str:
    """The message for a copy that drops the policy it was given."""
    drops = f"expects its cache policy to reach memory, but got a '{atom.kind}' atom that drops it"
    return f"{drops}: {_remedy(op, atom)}"


def _remedy(op: ir.Operation, atom: AtomType) -> str:
    if atom.kind in ("simt_async_copy", "universal_copy") and policy_setter(op) is None:
        # set in a branch or a loop
        return f"{HONOR}, and give it as a keyword of the copy"
    if atom.kind == "simt_async_copy":
        return f"{HONOR} and install nvidia-cutlass-dsl[cu13] 4.8 or later, or load with 'CopyG2ROp'"
    if atom.kind == "universal_copy":
        if kind := kind_with_policy(op):
            return f"{HONOR}, or copy with 'Copy{kind.upper()}Op'"
        if "" in map(memory_space, operands(op)[1:3]):
            return "copy with 'CopyG2ROp' or 'CopyR2GOp' if the address is one of global memory"
        return "leave it out, a universal copy can keep one between global memory and registers alone"
    if atom.invariant and memory_space(operands(op)[1]) != "gmem":
        return "make its source a pointer to global memory"
    if atom.kind in ("g2r", "r2g"):
        return HONOR
    return "leave it out"


def has_no_effect(atom: AtomType) -> str | None:
    """The message for a copy with a cache mode or memory order that the compiler drops."""
    for (kind, parameter), known in HAS_EFFECT.items():
        found = re.search(rf"\b{parameter} = (\w+)", atom.parameters)
        if found and atom.kind == kind and not atom.qualified and found[1] not in known:
            return f"expects one of {', '.join(known)} for '{parameter}', but got '{found[1]}': it has no effect"
    return None


class Verifier:
    """Looks at the copies of one module."""

    def __init__(self, module: ir.Operation) -> None:
        self._flow = PolicyFlow(CallGraph(module))
        self._expander = Expander()

    def loses_policy(self, op: ir.Operation, atom: AtomType) -> bool:
        """Whether the compiler would drop the policy of a copy."""
        trace = self._flow.trace(op)
        if any(map(records_policy, trace.setters)):
            return True
        if not trace.carries_policy or atom.kind not in ("g2r", "r2g"):
            return False
        try:
            return not self._expander.expand(op, sets_policy=compiler_sees_policy(op))[0].keeps_policy
        except ir.MLIRError:
            # the compiler will say why
            return False


@dataclass
class VerifyCachePolicy(Pass):
    """Fails where a copy would lose the cache policy or the cache mode it was given. Changes nothing.

    Attributes:
        warn: whether to warn instead, of policies alone.
    """

    name = "verify-cache-policy"

    warn: bool = False

    def run(self, module: ir.Operation) -> None:
        verifier = Verifier(module)
        errors = []
        for op in walk(module):
            atom = copy_atom(op) if op.name in COPY_OPS else None
            if atom is None:
                continue
            if verifier.loses_policy(op, atom):
                if self.warn:
                    warn(op, drops_policy(op, atom))
                else:
                    errors.append(error(op, drops_policy(op, atom)))
            elif not self.warn and (message := has_no_effect(atom)):
                errors.append(error(op, message))
        if errors:
            raise PassFailure("\n".join(map(str, errors)), errors[0].line)
