"""Proofs that a kernel never writes an argument.

What C++ programmers promise with `const`, `prove` derives: it looks at every op of a kernel, and unless all that the
kernel may write has a known origin, it proves nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutlass._mlir import ir

from .bindings import integer_constant, operands, raw, walk
from .dataflow import CallGraph
from .effects import ASM_TEXT, CALLS, WRITERS, asm_may_write, at_line, destinations
from .names import argument_name
from .origins import SUBTRACTIONS, TO_INTEGER, AddressFlow, is_address, is_global, is_tma

__all__ = ["PROVEN_OPS", "Verdict", "prove"]

#: Kernels, and functions that kernels written elsewhere call.
PROVEN_OPS = ("cuda.kernel", "cuda.func", "lir.func", "gpu.func")

#: Read-modify-write accesses: other threads take part in them, so the kernel communicates while it runs.
ATOMICS = frozenset(
    {"lir.atomic_generic", "llvm.atomicrmw", "llvm.cmpxchg", "nvvm.atomicrmw", "nvvm.multimem.red", "nvvm.red"}
)

#: Ops that write no global memory, besides those in `WRITERS`. Whatever is not listed may write anything.
HARMLESS = re.compile(
    r"""
      (arith|math|scf|cf|ub|builtin|cute) \. .*
    | vector \. (?!.*(store|scatter|write)) .*
    | (func|cuda|gpu) \. return
    | gpu \. (thread_id|block_id|block_dim|grid_dim|global_id|lane_id|subgroup_\w*id|num_subgroups|cluster_\w+|barrier
            |shuffle|ballot|printf)
    | llvm \. (?!call|invoke|va_arg) \w+                # `store` and the atomics are in WRITERS
    | llvm \. mlir \. (constant|undef|poison|zero)
    | llvm \. intr \. (?!mem|masked|matrix|coro|eh|vp|va|stack|thread|.*(store|scatter)) .*
    | nvvm \. (read\.ptx\.sreg|barrier|bar\.warp|shfl|vote|redux|match|elect|mbarrier|fence|cluster|convert|cvt|add|sub
              |mul|fma|fabs|fmax|fmin|ex2|log2|sin|cos|rcp|rsqrt|prmt|dot|compare|nanosleep|setmaxregister|mapa|ldmatrix
              |stmatrix|movmatrix|mma|wmma\.(load|mma)|wgmma|tcgen05|load\.ext|prefetch|memory\.barrier|pmevent|trace
              |exit|griddepcontrol|clmad
              |cp\.async\.(shared|commit|wait|mbarrier)
              |cp\.async\.bulk\.(commit_group|commit\.group|wait|shared|prefetch|tensor\.(shared|prefetch))) .*
    | cute_nvgpu \. (atom\..* | get_grid_constant_pointer | prefetch_tma_desc | get_tma_desc_addr
                    |cast_tma_desc_to_integer | make_(gmma|umma)_smem_desc.* | sm\d+\.make_umma_smem_desc.*
                    |arch\.(alloc|get_dyn|make_warp|mma|prefetch|sm100|copy\.SM90\.bulk_copy_(g2s|s2s)
                           |copy\.SM100\.(copy_s2t|tma_load|tmem)).*)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Verdict:
    """Whether a kernel is proven never to write an argument.

    Attributes:
        argument: the kernel argument, a tensor or pointer of global memory.
        name: what the user calls it (see `argument_name`).
        reason: what speaks against it; empty if it is never written.
    """

    argument: ir.Value
    name: str
    reason: str

    @property
    def never_written(self) -> bool:
        """Whether the proof succeeded."""
        return not self.reason


def prove(kernel: ir.Operation, flow: AddressFlow, calls: CallGraph, allow_pdl: bool = False) -> list[Verdict]:
    """The verdicts on the tensors and pointers of global memory among the arguments of a kernel.

    `allow_pdl` takes programmatic dependent launch for harmless: the user promises that nothing which the kernel reads
    before `griddepcontrol.wait` is written by the kernel in front of it.
    """
    block = kernel.regions[0].blocks[0]
    written: dict[ir.Value, str] = {}
    launches = calls.callers(kernel)
    addresses_are_integers = False
    for op in walk(kernel)[1:]:
        reason = _ends_proof(op, allow_pdl)
        for destination in destinations(op) if op.name in WRITERS and not reason else ():
            origins = flow.origins(destination)
            through_tma = any(map(is_tma, origins.arguments))
            if not origins.known or not all(map(is_address, origins.arguments)) or (through_tma and not launches):
                # what a TMA atom was made for shows in the launch alone
                reason = f"an address of unknown origin is written{at_line(op, kernel)}"
            for argument in origins.arguments:
                for same in flow.may_overlap(argument):
                    written.setdefault(same, f"written{at_line(op, kernel)}")
        addresses_are_integers |= op.name in TO_INTEGER
        if op.name in SUBTRACTIONS and addresses_are_integers:
            # added to the one address, the difference leads to the other
            for argument in flow.compared(op):
                written.setdefault(argument, f"its distance to another address is computed{at_line(op, kernel)}")
        if reason:
            break
    else:
        reason = "" if allow_pdl else _launched_early(launches)
    return [
        Verdict(argument, argument_name(argument), reason or written.get(argument, ""))
        for argument in raw(block.arguments)
        if str(argument.type).startswith(("!cute.memref<", "!cute.ptr<", "!llvm.ptr")) and is_global(argument)
    ]


def _ends_proof(op: ir.Operation, allow_pdl: bool) -> str:
    """Why nothing can be proven about a kernel that `op` stands in; empty if `op` does not matter."""
    name = op.name
    if name in ASM_TEXT:
        text = ir.StringAttr(op.attributes[ASM_TEXT[name]]).value
        if asm_may_write(text):
            return "inline assembly may write"
        name = "nvvm.griddepcontrol" if "griddepcontrol" in text else name
    if name == "nvvm.griddepcontrol" and not allow_pdl:
        return "programmatic dependent launch"
    if name in CALLS:
        return "a call may write"
    if name in ATOMICS and destinations(op):
        return "an atomic is executed"
    return "" if name in WRITERS or HARMLESS.fullmatch(name) else f"'{name}' may write"


def _launched_early(launches: list[ir.Operation]) -> str:
    """Whether some launch of a kernel may overlap the kernel in front of it (programmatic dependent launch)."""
    for launch in launches:
        for config in operands(launch)[:1]:
            for use in config.uses:
                setter = use.owner.operation
                if "programmatic" in setter.name and integer_constant(operands(setter)[-1]) != 0:
                    return "programmatic dependent launch"
    return ""
