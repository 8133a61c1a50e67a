"""`strip-policy-record`: take out the records of cache policies that no atom holds.

Before (see `atoms.record_policy`):

    %recorded = builtin.unrealized_conversion_cast %atom, %policy : !cute_nvgpu.atom.universal_copy<f32>, i64 to ...
    cute.copy(%recorded, %src, %dst) : (...)

After:

    cute.copy(%atom, %src, %dst) : (...)

Input: any module. Promised: no record is left, so that the compiler sees what the DSL would have given it; with the
option `warn`, a warning for each copy that loses its policy by that.

Left untouched: every other op.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy.atoms import COPY_OPS, RECORD_OP, PolicyFlow, copy_atom, records_policy
from cute_cache_policy.bindings import operands, results
from cute_cache_policy.dataflow import CallGraph
from cute_cache_policy.diagnostics import warn
from cute_cache_policy.pass_manager import Pass, apply_patterns

from .verify_cache_policy import drops_policy


def strip(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace a record by the atom in it."""
    if not records_policy(op):
        # the compiler's own casts
        return False
    results(op)[0].replace_all_uses_with(operands(op)[0])
    rewriter.erase_op(op)
    return True


class WarnOfLoss:
    """Warns where a copy gets its policy from a record."""

    def __init__(self, module: ir.Operation) -> None:
        self._flow = PolicyFlow(CallGraph(module))

    def __call__(self, op: ir.Operation, _: object) -> bool:
        atom = copy_atom(op)
        # where --honor-cache-policy is on, the pass for asynchronous copies has said more of those that it leaves
        if atom and atom.kind != "simt_async_copy" and any(map(records_policy, self._flow.trace(op).setters)):
            warn(op, drops_policy(op, atom))
        return False


@dataclass
class StripPolicyRecord(Pass):
    """Replaces every record of a cache policy by the atom that it was recorded for.

    Attributes:
        warn: whether to warn of the copies that lose their policy by that: no pass has found a place for it.
    """

    name = "strip-policy-record"

    warn: bool = False

    def run(self, module: ir.Operation) -> None:
        if self.warn:
            apply_patterns(module, dict.fromkeys(COPY_OPS, WarnOfLoss(module)))
        apply_patterns(module, {RECORD_OP: strip})
