"""`infer-invariant-copy`: make loads from memory that a kernel never writes invariant.

Before:

    cute.copy(%atom, %src, %dst) : (!cute_nvgpu.atom.universal_copy<f32, 128 b>, !cute.memref<f32, gmem, ...>, ...)
    %x = cute.memref.load(%tensor, %coord) : (!cute.memref<f32, gmem, ...>, !cute.coord<"?">) -> f32

After (the address arithmetic is the compiler's own):

    %data = llvm.load %ptr invariant : !llvm.ptr<1> -> vector<4xf32>
    llvm.store %data, %fragment
    %x = llvm.load %ptr2 invariant : !llvm.ptr<1> -> f32

It does what nvcc does for `const __restrict__`: the user promises that the tensor arguments of a kernel do not overlap,
and that nobody else writes them while it runs. Which of them the kernel itself never writes, the pass proves (see
`proofs.py`). A non-coherent load may overtake stores; that is the point.

Input: a module as CuTe DSL traces it, or as the other passes of this package leave it, in front of the compiler's
`cute-expand-ops`.

Promised: every weak load of global memory whose address comes from such arguments alone is non-coherent: in a copy from
global memory to registers with a universal or G2R atom, in an access to an element or a vector, in what another pass
has put in the place of one. A cache policy, an L1 eviction priority and an L2 prefetch size stay: those loads become
inline assembly, as in `convert-invariant-copy-to-nvvm`.

Left untouched: volatile, relaxed, acquire and other ordered loads; loads with a cache operator that `ld.global.nc` does
not have; copies to shared memory, TMA and cp.async among them; loops that the compiler is asked to vectorize or to
pipeline, for it looks for the copies in them; kernels that take part in programmatic dependent launch, unless
`allow-pdl` is set; everything that is read through another address.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy import reporting
from cute_cache_policy.asm import emit_load, load_form
from cute_cache_policy.atoms import COPY_OPS, AtomType, copy_atom
from cute_cache_policy.bindings import enclosing, memory_space, operands
from cute_cache_policy.dataflow import CallGraph
from cute_cache_policy.expansion import LOADS, Expansion
from cute_cache_policy.lowering import CopyLowering
from cute_cache_policy.origins import AddressFlow, is_global
from cute_cache_policy.pass_manager import Pass, apply_patterns
from cute_cache_policy.proofs import PROVEN_OPS, prove
from cute_cache_policy.ptx import Target
from cute_cache_policy.restriction import marked_arguments

#: What `tensor[i]` and `tensor.load()` become; operand 0 is the tensor.
ELEMENT_OPS = ("cute.memref.load", "cute.memref.load_vec", "cute.ptr.load")


def can_be_non_coherent(load: ir.Operation) -> bool:
    """Whether a load of the compiler has only qualifiers that a non-coherent load can have as well."""
    if load.name == "llvm.load":
        return "volatile_" not in load.attributes and ir.IntegerAttr(load.attributes["ordering"]).value == 0
    weak = "order" not in load.attributes or "weak" in str(load.attributes["order"])
    return weak and not load_form(load, None, cache_hint=False).violations(Target(100))


def make_non_coherent(load: ir.Operation, atom: AtomType | None, policy: ir.Value | None, target: Target) -> None:
    """Make a load of the compiler non-coherent: one for a copy through `atom`, if for a copy, with `policy`, if any."""
    if load.name == "llvm.load":
        load.attributes["invariant"] = ir.UnitAttr.get()
    else:
        emit_load(load, load_form(load, atom, cache_hint=policy is not None), policy, target)


def needed_by_compiler(op: ir.Operation) -> bool:
    """Whether `op` stands in a loop that the compiler is asked to vectorize or pipeline: it looks for copies there."""
    loops = (parent for parent in enclosing(op) if parent.name == "scf.for")
    return any(name.startswith("cutlass.") for loop in loops for name in loop.attributes)


class LoadPattern:
    """Rewrites one load, or one op that becomes loads; holds what those of a module share."""

    def __init__(self, module: ir.Operation, never_written: set[ir.Value], flow: AddressFlow, target: Target) -> None:
        self._never_written = never_written
        self._flow = flow
        self._target = target
        self._lowering = CopyLowering(module)
        self._usable: dict[Expansion, bool] = {}

    def is_proven(self, address: ir.Value) -> bool:
        """Whether an address points to arguments that their kernels never write, and to nothing else."""
        if not is_global(address):
            return False
        origins = self._flow.origins(address)
        return origins.known and bool(origins.arguments) and origins.arguments <= self._never_written

    def load(self, op: ir.Operation, _: rewrite.PatternRewriter) -> bool:
        """Pattern for a load that the DSL, or another pass, has put in."""
        address, *policy = operands(op)
        if str(address.type) != "!llvm.ptr<1>" or not can_be_non_coherent(op) or not self.is_proven(address):
            return False
        make_non_coherent(op, None, policy[0] if policy else None, self._target)
        return True

    def element(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        """Pattern for an access to an element or a vector of a tensor."""
        if not self.is_proven(operands(op)[0]) or needed_by_compiler(op):
            return False
        expansion = self._expand(op, None, hinted=False)
        if expansion is None:
            return False
        expansion.inline(op, None)
        rewriter.erase_op(op)
        return True

    def copy(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        """Pattern for a copy."""
        atom = copy_atom(op)
        if atom is None or atom.kind not in ("g2r", "universal_copy") or atom.invariant:
            # an invariant copy is what it shall be already
            return False
        source, destination = operands(op)[1:3]
        if memory_space(destination) != "rmem" or not self.is_proven(source) or needed_by_compiler(op):
            return False
        trace = self._lowering.trace(op)
        if trace.carries_policy and atom.kind != "g2r":
            # the atom has no field for it: `convert-universal-copy-to-nvvm` lowers it, `verify-cache-policy` complains
            return False
        expansion = self._expand(op, atom, trace.carries_policy)
        if expansion is None:
            return False
        self._lowering.replace(op, atom, trace, expansion, rewriter, "inferred to be invariant")
        return True

    def _expand(self, op: ir.Operation, atom: AtomType | None, hinted: bool) -> Expansion | None:
        """The expansion of `op` with non-coherent loads, or None if PTX has no such loads."""
        expansion, is_new = self._lowering.expand(op, sets_policy=hinted)
        if is_new:
            usable = self._usable[expansion] = all(map(can_be_non_coherent, expansion.loads))
            for load in expansion.loads if usable else ():
                make_non_coherent(load, atom, expansion.policy if hinted else None, self._target)
        return expansion if self._usable[expansion] else None


@dataclass
class InferInvariantCopy(Pass):
    """Makes loads from arguments that a kernel never writes invariant.

    Attributes:
        gpu_arch: the target, such as `sm_90a`.
        allow_pdl: whether kernels that take part in programmatic dependent launch are treated like others: the user
            promises that the kernel in front writes nothing which this one reads before `griddepcontrol.wait`.
        only_marked: whether only the arguments count that the user marked with `cute_cache_policy.restrict`, in every
            kernel. Without it they do in kernels that have such marks.
    """

    name = "infer-invariant-copy"

    gpu_arch: str = "sm_80"
    allow_pdl: bool = False
    only_marked: bool = False

    def run(self, module: ir.Operation) -> None:
        calls = CallGraph(module)
        flow = AddressFlow(calls)
        kernels: list[ir.Operation] = []
        apply_patterns(module, dict.fromkeys(PROVEN_OPS, lambda op, _: bool(kernels.append(op))))
        never_written: set[ir.Value] = set()
        for kernel in kernels:
            marked = marked_arguments(kernel, flow)
            for verdict in prove(kernel, flow, calls, self.allow_pdl):
                if (marked or self.only_marked) and verdict.argument not in marked:
                    verdict = dataclasses.replace(verdict, reason="not marked with 'restrict'")
                reporting.verdict(kernel, verdict.name, verdict.reason)
                if verdict.never_written:
                    never_written.add(verdict.argument)
        if never_written:
            pattern = LoadPattern(module, never_written, flow, Target.parse(self.gpu_arch))
            apply_patterns(
                module,
                {
                    **dict.fromkeys(COPY_OPS, pattern.copy),
                    **dict.fromkeys(ELEMENT_OPS, pattern.element),
                    **dict.fromkeys(LOADS, pattern.load),
                },
            )
