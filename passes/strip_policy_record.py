"""`strip-policy-record`: take out the records of cache policies that no atom holds.

Before (see `atoms.record_policy`):

    %recorded = builtin.unrealized_conversion_cast %atom, %policy : !cute_nvgpu.atom.universal_copy<f32>, i64 to ...
    cute.copy(%recorded, %src, %dst) : (...)

After:

    cute.copy(%atom, %src, %dst) : (...)

Input: any module. Promised: no record is left, so that the compiler sees what the DSL would have given it.

Left untouched: every other op.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy.atoms import RECORD_OP, records_policy
from cute_cache_policy.bindings import operands, results
from cute_cache_policy.pass_manager import Pass, apply_patterns


def strip(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
    """Replace a record by the atom in it."""
    if not records_policy(op):
        # the compiler's own casts
        return False
    results(op)[0].replace_all_uses_with(operands(op)[0])
    rewriter.erase_op(op)
    return True


@dataclass
class StripPolicyRecord(Pass):
    """Replaces every record of a cache policy by the atom that it was recorded for."""

    name = "strip-policy-record"

    def run(self, module: ir.Operation) -> None:
        apply_patterns(module, {RECORD_OP: strip})
