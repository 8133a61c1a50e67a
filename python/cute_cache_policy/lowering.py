"""What passes share that replace a copy by an expansion of it."""

from __future__ import annotations

from cutlass._mlir import ir, rewrite

from . import reporting
from .atoms import EVICT_NORMAL_POLICY, AtomType, PolicyFlow, PolicyTrace, policy_setter, policy_value, set_policy
from .dataflow import CallGraph
from .diagnostics import error
from .expansion import Expander, Expansion

__all__ = ["CopyLowering"]


class CopyLowering:
    """Replaces copies of one module by expansions."""

    def __init__(self, module: ir.Operation) -> None:
        self.calls = CallGraph(module)
        self._flow = PolicyFlow(self.calls)
        self._expander = Expander()

    def trace(self, op: ir.Operation) -> PolicyTrace:
        """Where the policy of a copy comes from."""
        return self._flow.trace(op)

    def recorded(self, op: ir.Operation) -> bool:
        """Whether a copy carries a policy that its atom has no field for; it must be a keyword of the copy."""
        if not self.trace(op).carries_policy:
            return False
        if policy_setter(op) is None:
            raise error(
                op,
                "expects the cache policy of an atom that has no field for one as a keyword of the copy, "
                "but got it through control flow",
            )
        return True

    def expand(
        self, op: ir.Operation, atom_type: ir.Type | None = None, sets_policy: bool = True
    ) -> tuple[Expansion, bool]:
        """`Expander.expand`, with its failure as an error of `op`."""
        try:
            return self._expander.expand(op, atom_type, sets_policy)
        except ir.MLIRError as failure:
            raise error(op, f"expects an op that 'cute-expand-ops' can expand, but got: {failure}") from failure

    def replace(
        self,
        op: ir.Operation,
        atom: AtomType,
        trace: PolicyTrace,
        expansion: Expansion,
        rewriter: rewrite.PatternRewriter,
        remark: str = "",
    ) -> None:
        """Put `expansion` in the place of `op`, on the policy of the path taken: normal priority where none was set.

        A copy that carries no policy on any path gets none; `remark` is for the report.
        """
        hinted = trace.carries_policy
        for edge in trace.bare if hinted else ():
            set_policy(edge, EVICT_NORMAL_POLICY)
        reporting.note(op, expansion, remark, policy=hinted)
        expansion.inline(op, policy_value(op, atom) if hinted else None)
        rewriter.erase_op(op)
