"""`convert-async-copy-to-nvvm`: give an asynchronous copy the cache policy that its atom cannot hold.

Before (a cast of an atom and a policy records `cache_policy=` where the DSL drops it; see `atoms.record_policy`):

    %atom = builtin.unrealized_conversion_cast %a, %policy : !async, i64 to !async
    cute.copy(%atom, %src, %dst) : (!async, ...)  // !cute_nvgpu.atom.simt_async_copy<f32, cache = global, 128 b>

After (the address arithmetic and the predicates are the compiler's own):

    llvm.inline_asm has_side_effects "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2;", ...

Input: a module as CuTe DSL traces it, with recorded policies, in front of the compiler's `cute-expand-ops`.

Promised: with a ptxas of 13.4.59 or later, no asynchronous copy from global to shared memory is left whose atom carries
a policy. Earlier ones are not known to be right: from 13.1 to 13.3 ptxas lost the register behind the hint of a
cp.async, and the kernel died of an illegal instruction (triton-lang/triton pull requests 11660 and 11848,
IST-DASLab/marlin issue 44). With those the copy stays as it is, and it is for `verify-cache-policy` to say so.

Left untouched: every other op.

Why inline asm: `nvvm.cp.async.shared.global` has no operand for a policy, in any release up to 4.8.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy import _dsl
from cute_cache_policy.asm import async_form, emit_async_copy
from cute_cache_policy.atoms import COPY_OPS, copy_atom
from cute_cache_policy.diagnostics import CachePolicyError
from cute_cache_policy.lowering import CopyLowering
from cute_cache_policy.pass_manager import Pass, apply_patterns
from cute_cache_policy.ptx import Target

ASYNC_COPY = "nvvm.cp.async.shared.global"

#: The first ptxas that is known to keep the policy of a cp.async.
FIRST_RIGHT_PTXAS = (13, 4, 59)


class AsyncCopyPattern:
    """Rewrites one copy op; holds what the copies of a module share."""

    def __init__(self, module: ir.Operation, target: Target, ptxas: tuple[int, ...] | None) -> None:
        self._lowering = CopyLowering(module)
        self._target = target
        self._ptxas = ptxas

    def __call__(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        atom = copy_atom(op)
        if atom is None or atom.kind != "simt_async_copy" or not self._lowering.recorded(op):
            return False
        ptxas = self._ptxas or _dsl.ptxas_version()
        if ptxas is None or ptxas < FIRST_RIGHT_PTXAS:
            return False
        expansion, is_new = self._lowering.expand(op, sets_policy=False)
        copies = [(access, async_form(access)) for access, _ in expansion.accesses() if access.name == ASYNC_COPY]
        if any(form.violations(self._target) for _, form in copies):
            # the compiler refuses it with an error of its own
            return False
        if is_new:
            for copy, form in copies:
                emit_async_copy(copy, form, expansion.policy)
        self._lowering.replace(op, atom, self._lowering.trace(op), expansion, rewriter)
        return True


@dataclass
class ConvertAsyncCopyToNVVM(Pass):
    """Lowers asynchronous copies with a cache policy to cp.async with a cache hint.

    Attributes:
        gpu_arch: the target, such as `sm_90a`.
        ptxas: the version of ptxas that will assemble the code, such as `13.4.59`; empty for the one in the compiler.
    """

    name = "convert-async-copy-to-nvvm"

    gpu_arch: str = "sm_80"
    ptxas: str = ""

    def run(self, module: ir.Operation) -> None:
        try:
            ptxas = tuple(map(int, self.ptxas.split("."))) if self.ptxas else None
        except ValueError:
            raise CachePolicyError(f"'ptxas' expects a version such as '13.4.59', but got '{self.ptxas}'") from None
        pattern = AsyncCopyPattern(module, Target.parse(self.gpu_arch), ptxas)
        apply_patterns(module, dict.fromkeys(COPY_OPS, pattern))
