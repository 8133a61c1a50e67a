"""Which ops write memory, and where.

The dialects do not tell their effects through the Python bindings, so the ops are listed here.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from cutlass._mlir import ir

from .atoms import COPY_OPS
from .bindings import operands, type_text
from .dataflow import CallGraph
from .diagnostics import SourceLine
from .names import argument_name, kernel_name
from .origins import AddressFlow, is_address, is_global
from .pass_manager import apply_patterns

__all__ = ["WRITERS", "Write", "WrittenMemory", "asm_may_write", "at_line", "destinations"]

#: The operand that holds the address which an op writes to.
DESTINATION = {
    "cute.gemm": 1,
    "cute.memref.store": 0,
    "cute.memref.store_vec": 1,
    "cute.mma_atom_call": 1,
    "cute.ptr.store": 1,
    "cute_nvgpu.arch.copy.SM90.bulk_copy_s2g": 1,
    "cute_nvgpu.arch.copy.SM100.tma_reduce": 0,
    "cute_nvgpu.arch.copy.SM100.tma_store": 0,
    "cute_nvgpu.arch.copy.SM107.tma_store_override": 2,
    "lir.atomic_generic": 0,
    "lir.copy": 1,
    "lir.detail.tma_reduce_store": 2,
    "lir.detail.tma_store": 2,
    "lir.simt_auto_vec_copy": 1,
    "lir.tma_reduce_store": 1,
    "lir.tma_store": 1,
    "llvm.atomicrmw": 0,
    "llvm.cmpxchg": 0,
    "llvm.intr.experimental.vp.strided.store": 1,
    "llvm.intr.masked.compressstore": 1,
    "llvm.intr.masked.scatter": 1,
    "llvm.intr.masked.store": 1,
    "llvm.intr.matrix.column.major.store": 1,
    "llvm.intr.memcpy": 0,
    "llvm.intr.memcpy.inline": 0,
    "llvm.intr.memmove": 0,
    "llvm.intr.memset": 0,
    "llvm.intr.memset.inline": 0,
    "llvm.intr.vp.store": 1,
    "llvm.store": 1,
    "nvvm.atomicrmw": 0,
    "nvvm.cp.async.bulk.global.shared.cta": 0,
    "nvvm.cp.async.bulk.tensor.global.shared.cta": 0,
    "nvvm.cp.async.bulk.tensor.global.shared.cta.ext": 0,
    "nvvm.cp.async.bulk.tensor.global.shared.cta.override": 2,
    "nvvm.cp.async.bulk.tensor.reduce": 0,
    "nvvm.cp.async.bulk.tensor.reduce.override": 2,
    "nvvm.multimem.red": 1,
    "nvvm.multimem.st": 1,
    "nvvm.red": 0,
    "nvvm.st.bulk": 0,
    "nvvm.store.ext": 1,
    "nvvm.wmma.store": 0,
}

#: Inline assembly, by the attribute that holds its text.
ASM_TEXT = {"llvm.inline_asm": "asm_string", "nvvm.inline_ptx": "ptxCode"}

#: Calls: nothing is known of what they do with the addresses that they are given.
CALLS = frozenset({"func.call", "llvm.call", "llvm.call_intrinsic"})

#: Every op that `destinations` knows to write.
WRITERS = frozenset({*COPY_OPS, *DESTINATION, *ASM_TEXT, *CALLS})

#: The PTX instructions that do not write global memory, by the first part of their name (PTX ISA 9.0, section 9.7).
#: `st`, `red`, `atom` and the asynchronous copies do, unless they name another state space.
READ_ONLY_PTX = frozenset(
    re.findall(
        r"\w+",
        """
        abs activemask add addc alloca and applypriority bar barrier bfe bfi bfind bmsk bra brev brkpt brx clmad clz
        cnot copysign cos createpolicy cvt cvta div dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol
        isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix
        mul mul24 nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp redux rem ret rsqrt sad selp set
        setmaxnreg setp shf shfl shl shr sin slct sqrt stmatrix sub subc szext tanh tcgen05 testp trap vote wgmma xor
        """,
    )
)

#: The state spaces besides global memory that an instruction can write to.
_ELSEWHERE = re.compile(r"\.(shared|local|param)\b")


def asm_may_write(text: str) -> bool:
    """Whether PTX text may write global memory: whether it holds an instruction that is not known not to.

    Operands in braces are taken for statements of their own; like directives, they have no instruction.
    """
    text = re.sub(r"(?s)/\*.*?\*/|//[^\n]*", " ", text)
    # a name may be broken anywhere in front of a dot; `$(`, `$|` and `$)` are LLVM's alternatives
    for statement in re.split(r"[;{}\n]|\$[(|)]", re.sub(r"\s+(?=[.:])", "", text)):
        statement = re.sub(r"^\s*(?:[\w$%]+:\s*)*(?:@\s*!?\s*[\w$%.]+\s+)?", "", statement)
        match = re.match(r"([a-z]\w*)((?:[.:]+\w+)*)", statement)
        if match is None:
            if statement[:1].isalpha():
                return True
            continue
        head, qualifiers = match[1], match[2]
        if head in READ_ONLY_PTX:
            continue
        if head in ("st", "red", "atom") and _ELSEWHERE.search(qualifiers):
            continue
        if head == "cp" and qualifiers.startswith(".async") and ".global.shared" not in qualifiers:
            continue
        return True
    return False


def destinations(op: ir.Operation) -> list[ir.Value]:
    """The addresses of global memory that an op in `WRITERS` writes to, or may write to."""
    name = op.name
    values = operands(op)
    if name in COPY_OPS:
        # (atom, sources, destinations, predicate)
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        written = values[1 + sizes[1] : 1 + sizes[1] + sizes[2]]
        if any("coord_tensor" in type_text(value.type) for value in written):
            # a TMA store: the coordinates tell where in the tensor, the atom tells which tensor
            written = values[:1]
    elif name in ASM_TEXT:
        may_write = asm_may_write(ir.StringAttr(op.attributes[ASM_TEXT[name]]).value)
        written = [v for v in values if may_write and (is_address(v) or type_text(v.type) in ("i32", "i64"))]
    elif name in CALLS:
        written = [value for value in values if is_address(value)]
    else:
        written = [values[DESTINATION[name]]]
    return [value for value in written if is_global(value)]


def at_line(op: ir.Operation, kernel: ir.Operation) -> str:
    """` at line <number>` of the file of `kernel`, if that is known and tells more than the line of `kernel` does."""
    line, home = SourceLine.of(op), SourceLine.of(kernel)
    return f" at line {line.number}" if line and home and line.exact and line.file == home.file else ""


@dataclass(frozen=True)
class Write:
    """A write to memory that the same kernel reads.

    Attributes:
        op: the op that writes.
        read, written: the kernel arguments that are read and written through; two where a launch passes the same
            tensor for both.
    """

    op: ir.Operation
    read: ir.Value
    written: ir.Value

    def __str__(self) -> str:
        block = self.read.owner
        assert isinstance(block, ir.Block)
        kernel = kernel_name(block.owner.operation)
        where = at_line(self.op, block.owner.operation)
        if self.read == self.written:
            return f"kernel '{kernel}' also writes {argument_name(self.read)}{where}"
        same = f"which is passed the same tensor as {argument_name(self.read)}"
        return f"kernel '{kernel}' also writes {argument_name(self.written)}{where}, {same}"


class WrittenMemory:
    """The kernel arguments that the kernels of a module write through.

    Copies of the module may be erased once the first question has been asked.
    """

    def __init__(self, module: ir.Operation, calls: CallGraph) -> None:
        self._module = module
        self._calls = calls
        self._flow = AddressFlow(calls)

    @functools.cached_property
    def _writes(self) -> dict[ir.Value, ir.Operation]:
        """The first write through each argument."""
        ops: list[ir.Operation] = []
        # the calls are needed just now, too: one walk finds both
        patterns = self._calls.collectors()

        def collect(op: ir.Operation, rewriter: Any) -> bool:
            ops.append(op)
            return op.name in patterns and patterns[op.name](op, rewriter)

        apply_patterns(self._module, {**patterns, **dict.fromkeys(WRITERS, collect)})
        writes: dict[ir.Value, ir.Operation] = {}
        for op in ops:
            for destination in destinations(op):
                for argument in self._flow.origins(destination).arguments:
                    writes.setdefault(argument, op)
        return writes

    def by(self, address: ir.Value) -> Write | None:
        """A write to the memory that `address` points to.

        None unless `address` and the written address share a kernel argument, or have two arguments that a launch in
        the module passes the same tensor for.
        """
        for written, op in self._writes.items():
            for read in self._flow.origins(address).arguments:
                if self._flow.same_memory(read, written):
                    return Write(op, read, written)
        return None
