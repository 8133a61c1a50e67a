"""`convert-invariant-copy-to-nvvm`: give an invariant copy its cache policy and its load qualifiers.

Before:

    %atom = cute_nvgpu.atom.set_value<cache_policy>(%a, %policy) : (!g2r, i64)
    cute.copy(%atom, %src, %dst) : (!g2r, ...)  // !g2r = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>

After (the address arithmetic is the compiler's own):

    %data = llvm.inline_asm "ld.global.nc.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, $4, $5;", ... %address, %policy
    llvm.store %data, %fragment

Input: a module as CuTe DSL traces it, in front of the compiler's `cute-expand-ops`.

An atom that is invariant and has qualifiers (`mem_order = release`, see `qualifiers.py`) gets the load that PTX has for
them, with a policy or without:

    cute.copy(%a, %src, %dst) : (!cute_nvgpu.atom.g2r<f32 copy_bits = 128 mem_order = release
                                 l2_prefetch_size = size_256b l1_cache_evict_priority = no_allocate>, ...)

    %data = llvm.inline_asm "ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {$0, $1, $2, $3}, $4;", ... %address

Promised: no `cute.copy` or `cute.copy_atom_call` is left whose G2R atom is invariant and has qualifiers, or carries a
cache policy on some path. Each became as many loads, of the same widths, from the same addresses, under the same
predicates, as the compiler's own expansion of that copy; a 256-bit load becomes two of 128 bits below sm_100. The loads
carry the copy's location and have no side effects, so that independent ones may overlap.

A copy whose source the same kernel also writes (the same kernel argument, or two that a launch passes the same tensor
for) breaks the promise of `invariant = true`: a non-coherent load may then return the old value, and one without side
effects may be merged with an earlier one. It becomes the compiler's own coherent load instead, with the policy and the
qualifiers (`nvvm.load.ext`), and a warning says so. Two arguments that the caller lets overlap are not seen.

Left untouched: every other op. Where the compiler keeps the policy by itself, the copy is left to it.

Why inline asm: no NVVM or LLVM op up to and including those of nvidia-cutlass-dsl 4.8.1 lowers to a non-coherent load
with a cache hint or a qualifier. `nvvm.load.ext` has those but no `.nc`, `llvm.load invariant` has `.nc` alone
(NVIDIA/cutlass issue 3726).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cutlass._mlir import ir, rewrite

from cute_cache_policy.asm import emit_load, load_form
from cute_cache_policy.atoms import COPY_OPS, AtomType, copy_atom
from cute_cache_policy.bindings import operands
from cute_cache_policy.diagnostics import error, warn
from cute_cache_policy.effects import WrittenMemory
from cute_cache_policy.expansion import Expansion
from cute_cache_policy.lowering import CopyLowering
from cute_cache_policy.pass_manager import Pass, apply_patterns
from cute_cache_policy.ptx import Target


class InvariantCopyPattern:
    """Rewrites one copy op; holds what the copies of a module share."""

    #: Whether this release of the compiler keeps the policy of an invariant copy by itself; None until a copy tells.
    keeps_policy: ClassVar[bool | None] = None

    def __init__(self, module: ir.Operation, target: Target) -> None:
        self._target = target
        self._lowering = CopyLowering(module)
        self._written = WrittenMemory(module, self._lowering.calls)
        # one each, because the loads of what a copy expands to are rewritten in place
        self._coherent = CopyLowering(module)

    def __call__(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        atom = copy_atom(op)
        if atom is None or not ConvertInvariantCopyToNVVM.is_for(atom):
            return False
        hinted = (trace := self._lowering.trace(op)).carries_policy
        if not hinted and not atom.qualified:
            # a bare invariant load is already what the user asked for
            return False
        demoted = ""
        if write := self._written.by(operands(op)[1]):
            expansion, _ = self._coherent.expand(op, atom.coherent(operands(op)[0].type), hinted)
            lost = ", without its static L2 priority" if atom.static_l2_priority else ""
            remedy = "use invariant=False or pass the part that is written as another argument"
            warn(op, f"becomes a coherent load{lost}, because {write}: {remedy}")
            demoted = f"coherent, because {write}"
        else:
            if not atom.qualified and self._compiler_keeps_policy(op):
                # this release of the compiler needs no help
                return False
            # not the invariant loads, which pack their data otherwise: ptxas is to see what it sees without the promise
            expansion, is_new = self._lowering.expand(op, atom.coherent(operands(op)[0].type), hinted)
            if is_new:
                self._make_loads_non_coherent(op, atom, expansion, hinted)
        self._lowering.replace(op, atom, trace, expansion, rewriter, demoted)
        return True

    def _compiler_keeps_policy(self, op: ir.Operation) -> bool:
        """Whether the compiler's own expansion of an invariant copy has a use for the policy; one copy tells."""
        cls = type(self)
        if cls.keeps_policy is None:
            cls.keeps_policy = self._lowering.expand(op)[0].keeps_policy
        return cls.keeps_policy

    def _make_loads_non_coherent(self, op: ir.Operation, atom: AtomType, expansion: Expansion, hinted: bool) -> None:
        if not expansion.loads:
            source = operands(op)[1].type
            raise error(op, f"expects a source in global memory and a fragment in registers, but got {source}")
        for load in expansion.loads:
            form = load_form(load, atom, hinted)
            if problems := form.pieces(self._target)[0].violations(self._target):
                raise error(
                    op, f"expects a load that {self._target} has, but got '{form.mnemonic}': {'; '.join(problems)}"
                )
            emit_load(load, form, expansion.policy if hinted else None, self._target)


@dataclass
class ConvertInvariantCopyToNVVM(Pass):
    """Lowers invariant G2R copies that carry a cache policy to non-coherent loads with a cache hint.

    Attributes:
        gpu_arch: the target, such as `sm_90a`.
    """

    name = "convert-invariant-copy-to-nvvm"

    gpu_arch: str = "sm_80"

    @staticmethod
    def is_for(atom: AtomType) -> bool:
        """Whether the copies through `atom` are in scope; the compiler lowers others as they are written."""
        return atom.kind == "g2r" and atom.invariant

    def run(self, module: ir.Operation) -> None:
        pattern = InvariantCopyPattern(module, Target.parse(self.gpu_arch))
        apply_patterns(module, dict.fromkeys(COPY_OPS, pattern))
