"""`convert-invariant-copy-to-nvvm`: give an invariant copy its cache policy.

Before:

    %atom = cute_nvgpu.atom.set_value<cache_policy>(%a, %policy) : (!g2r, i64)
    cute.copy(%atom, %src, %dst) : (!g2r, ...)  // !g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>

After (the address arithmetic is the compiler's own):

    %data = llvm.inline_asm "ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;", ... %address, %policy
    llvm.store %data, %fragment

Input: a module as CuTe DSL traces it, in front of the compiler's `cute-expand-ops`.

Promised: no `cute.copy` or `cute.copy_atom_call` is left whose G2R atom is `invariant = true` and carries a cache
policy on some path. Each became as many loads, of the same widths, from the same addresses, under the same predicates,
as the compiler's own expansion of that copy; a 256-bit load becomes two of 128 bits below sm_100. The loads carry the
copy's location and have no side effects, so that independent ones may overlap.

Left untouched: every other op. Where the compiler keeps the policy by itself, the copy is left to it.

Why inline asm: no NVVM or LLVM op up to and including those of nvidia-cutlass-dsl 4.8.1 lowers to a non-coherent load
with a cache hint. `nvvm.load.ext` has the hint but no `.nc`, `llvm.load invariant` has `.nc` but no hint
(NVIDIA/cutlass issue 3726).
"""

from __future__ import annotations

from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy import reporting
from cute_cache_policy.asm import emit_load
from cute_cache_policy.atoms import COPY_OPS, EVICT_NORMAL_POLICY, PolicyFlow, copy_atom, policy_value, set_policy
from cute_cache_policy.bindings import operands
from cute_cache_policy.dataflow import CallGraph
from cute_cache_policy.diagnostics import error
from cute_cache_policy.expansion import Expander, Expansion
from cute_cache_policy.pass_manager import Pass, apply_patterns
from cute_cache_policy.ptx import GlobalLoad, Target


class InvariantCopyPattern:
    """Rewrites one copy op; holds what the copies of a module share."""

    def __init__(self, module: ir.Operation, target: Target) -> None:
        self._target = target
        self._flow = PolicyFlow(CallGraph(module))
        self._expander = Expander()

    def __call__(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        atom = copy_atom(op)
        if atom is None or atom.kind != "g2r" or not atom.invariant:
            # the compiler lowers other copies as they are written
            return False
        trace = self._flow.trace(op)
        if not trace.carries_policy:
            # a bare invariant load is already what the user asked for
            return False
        expansion, is_new = self._expand(op)
        if expansion.keeps_policy:
            # this release of the compiler needs no help
            return False
        if is_new:
            self._make_loads_non_coherent(op, expansion)
        for edge in trace.bare:
            set_policy(edge, EVICT_NORMAL_POLICY)
        reporting.note(op, expansion)
        expansion.inline(op, policy_value(op, atom))
        rewriter.erase_op(op)
        return True

    def _expand(self, op: ir.Operation) -> tuple[Expansion, bool]:
        try:
            return self._expander.expand(op)
        except ir.MLIRError as failure:
            raise error(op, f"expects a copy that 'cute-expand-ops' can expand, but got: {failure}") from failure

    def _make_loads_non_coherent(self, op: ir.Operation, expansion: Expansion) -> None:
        if not expansion.loads:
            source = operands(op)[1].type
            raise error(op, f"expects a source in global memory and a fragment in registers, but got {source}")
        if problems := GlobalLoad(32, cache_hint=True).violations(self._target):
            raise error(
                op, f"with a cache policy expects a target that can load it, but got {self._target}: {problems[0]}"
            )
        for load in expansion.loads:
            emit_load(load, expansion.policy, self._target)


@dataclass
class ConvertInvariantCopyToNVVM(Pass):
    """Lowers invariant G2R copies that carry a cache policy to non-coherent loads with a cache hint.

    Attributes:
        gpu_arch: the target, such as `sm_90a`.
    """

    name = "convert-invariant-copy-to-nvvm"

    gpu_arch: str = "sm_80"

    def run(self, module: ir.Operation) -> None:
        pattern = InvariantCopyPattern(module, Target.parse(self.gpu_arch))
        apply_patterns(module, dict.fromkeys(COPY_OPS, pattern))
