"""`convert-coherent-copy-to-nvvm`: give a copy the cache policy that comes to it through control flow.

Before:

    %atom = scf.if %is_hot -> (!cute_nvgpu.atom.g2r<f32 copy_bits = 128>) {
      %0 = cute_nvgpu.atom.set_value<cache_policy>(%a, %keep) : (...)
      scf.yield %0 : ...
    } else {
      %1 = cute_nvgpu.atom.set_value<cache_policy>(%a, %evict) : (...)
      scf.yield %1 : ...
    }
    cute.copy(%atom, %src, %dst) : (...)

After (the address arithmetic and the load are the compiler's own):

    %policy = cute_nvgpu.atom.get_value<cache_policy>(%atom) : (!cute_nvgpu.atom.g2r<f32 copy_bits = 128>) -> i64
    %data = nvvm.load.ext %ptr l2_cache_hint = %policy : !llvm.ptr<1> -> vector<4xi32>

Input: a module as CuTe DSL traces it, in front of the compiler's `cute-expand-ops`. That pass looks no further than the
op that defines the atom, and drops a policy that was set anywhere else.

Promised: no G2R or R2G copy without `invariant = true` is left whose atom carries a policy that the compiler would
drop. Each became the loads and stores that the compiler makes of a copy whose policy it sees. Along paths on which no
policy was set, the priority is the normal one.

Left untouched: every other op.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy.atoms import COPY_OPS, AtomType, compiler_sees_policy, copy_atom
from cute_cache_policy.lowering import CopyLowering
from cute_cache_policy.pass_manager import Pass, apply_patterns


class CoherentCopyPattern:
    """Rewrites one copy op; holds what the copies of a module share."""

    def __init__(self, module: ir.Operation) -> None:
        self._lowering = CopyLowering(module)

    def __call__(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        atom = copy_atom(op)
        if atom is None or not ConvertCoherentCopyToNVVM.is_for(atom):
            return False
        if compiler_sees_policy(op):
            return False
        trace = self._lowering.trace(op)
        if not trace.carries_policy or self._lowering.expand(op, sets_policy=False)[0].keeps_policy:
            # this release of the compiler needs no help
            return False
        self._lowering.replace(op, atom, trace, self._lowering.expand(op)[0], rewriter)
        return True


@dataclass
class ConvertCoherentCopyToNVVM(Pass):
    """Lowers G2R and R2G copies whose cache policy comes out of control flow to loads and stores with a cache hint."""

    name = "convert-coherent-copy-to-nvvm"

    @staticmethod
    def is_for(atom: AtomType) -> bool:
        """Whether the copies through `atom` are in scope: no other atom holds a policy that ends in a load or store."""
        return atom.kind in ("g2r", "r2g") and not atom.invariant

    def run(self, module: ir.Operation) -> None:
        apply_patterns(module, dict.fromkeys(COPY_OPS, CoherentCopyPattern(module)))
