"""`convert-universal-copy-to-nvvm`: give a universal copy the cache policy that its atom cannot hold.

Before (a cast of an atom and a policy records `cache_policy=` where the DSL drops it; see `atoms.record_policy`):

    %atom = builtin.unrealized_conversion_cast %a, %policy : !cute_nvgpu.atom.universal_copy<f32, 128 b>, i64 to ...
    cute.copy(%atom, %src, %dst) : (!cute_nvgpu.atom.universal_copy<f32, 128 b>, !cute.memref<f32, gmem, ...>, ...)

After (what the compiler makes of the same copy with a G2R atom; with an R2G atom, if global memory is the destination):

    %data = nvvm.load.ext %ptr l2_cache_hint = %policy : !llvm.ptr<1> -> vector<4xi32>
    llvm.store %data, %fragment

Input: a module as CuTe DSL traces it, with recorded policies, in front of the compiler's `cute-expand-ops`.

Promised: no universal copy between global memory and registers is left whose atom carries a policy.

Left untouched: every other op, universal copies between other memories among them; `verify-cache-policy` reports those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutlass._mlir import ir, rewrite

from cute_cache_policy.asm import bit_width
from cute_cache_policy.atoms import COPY_OPS, copy_atom, kind_with_policy
from cute_cache_policy.bindings import operands, results
from cute_cache_policy.expansion import Expansion
from cute_cache_policy.lowering import CopyLowering
from cute_cache_policy.pass_manager import Pass, apply_patterns


def access_bits(expansion: Expansion) -> int | None:
    """The width of the accesses of an expansion, in bits: a universal copy picks it by itself.

    None where an access is not aligned to its width, or is less than a byte: no atom with a policy does that.
    """
    widths = set()
    for op, _ in expansion.accesses():
        width = bit_width((results(op) or operands(op))[0].type)
        if width < 8 or width > ir.IntegerAttr(op.attributes["alignment"]).value * 8:
            return None
        widths.add(width)
    return min(widths, default=None)


class UniversalCopyPattern:
    """Rewrites one copy op; holds what the copies of a module share."""

    def __init__(self, module: ir.Operation) -> None:
        self._lowering = CopyLowering(module)

    def __call__(self, op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
        atom = copy_atom(op)
        if atom is None or atom.kind != "universal_copy":
            return False
        kind = kind_with_policy(op)
        if kind is None:
            # PTX has no cache hint for shared memory
            return False
        if not self._lowering.recorded(op):
            return False
        value = operands(op)[0]
        bits = access_bits(self._lowering.expand(op, sets_policy=False)[0])
        if bits is None:
            # the compiler refuses it with an error of its own
            return False
        element = atom.parameters.partition(",")[0]
        text = re.sub(r"universal_copy<[^<>]*>", f"{kind}<{element} copy_bits = {bits}>", str(value.type))
        expansion, _ = self._lowering.expand(op, ir.Type.parse(text))
        self._lowering.replace(op, atom, self._lowering.trace(op), expansion, rewriter)
        return True


@dataclass
class ConvertUniversalCopyToNVVM(Pass):
    """Lowers universal copies with a cache policy between global memory and registers to accesses with a cache hint."""

    name = "convert-universal-copy-to-nvvm"

    def run(self, module: ir.Operation) -> None:
        apply_patterns(module, dict.fromkeys(COPY_OPS, UniversalCopyPattern(module)))
