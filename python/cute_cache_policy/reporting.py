"""What became of every copy: records that passes add while they work, collected by whoever asked for a report.

A pass that decides what a copy becomes says so in one of two ways; both do nothing, at the price of one look at a
context variable, unless a report is open:

    note(copy, expansion)       the copy became this expansion; call it while `copy` is still in the IR
    remark(copy, "why")         a later pass or the compiler will lower the copy; `why` goes onto its record

`note` counts the accesses of global memory that stand in the expansion at the time of the call, so call it after you
have replaced loads in it. A copy that is lowered otherwise than the user wrote it gets its reason by
`note(copy, expansion, "why")` or by `remark` beforehand. Copies that no pass notes are recorded as the compiler
expands them, once all passes are through.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from cutlass._mlir import ir

from .atoms import copy_atom
from .bindings import enclosing_function, operands, results
from .diagnostics import SourceLine
from .expansion import Expansion

__all__ = ["ArgumentRecord", "CopyRecord", "Report", "active", "compiling", "note", "open_report", "remark", "verdict"]


@dataclass(frozen=True)
class CopyRecord:
    """What became of one copy.

    Attributes:
        function: the function that was compiled.
        kernel: the kernel, or device function, that the copy stands in.
        line: where the copy stands; not `exact` where it is the kernel's, for lack of line information.
        tensor: the type of the tensor in global memory (the source, if none is).
        asked: what the user asked: the atom, and whether with a cache policy.
        emitted: how often each instruction was emitted, such as `{"ld.global.nc.L2::cache_hint.v4.b32": 8}`; copies in
            a loop that the compiler unrolls later count once.
        remark: how the copy was lowered otherwise than it was written, and why; empty if it was not.
    """

    function: str
    kernel: str
    line: SourceLine | None
    tensor: str
    asked: str
    emitted: dict[str, int]
    remark: str = ""


@dataclass(frozen=True)
class ArgumentRecord:
    """What `infer-invariant-copy` found out about one argument of a kernel.

    Attributes:
        function: the function that was compiled.
        kernel: the kernel.
        argument: what the user calls the argument.
        reason: why loads from it stay as they are; empty if the kernel never writes it, and they became invariant.
    """

    function: str
    kernel: str
    argument: str
    reason: str


@dataclass
class Report:
    """The records of all compiles while it was open (see `open_report`)."""

    records: list[CopyRecord] = field(default_factory=list)
    arguments: list[ArgumentRecord] = field(default_factory=list)
    _remarks: dict[ir.Operation, str] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[CopyRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


_open: ContextVar[tuple[Report, ...]] = ContextVar("cute_cache_policy_reports", default=())
_function: ContextVar[str] = ContextVar("cute_cache_policy_function", default="")


@contextlib.contextmanager
def open_report() -> Iterator[Report]:
    """Collect a record of every copy that is compiled in the block, in this thread."""
    report = Report()
    token = _open.set((*_open.get(), report))
    try:
        yield report
    finally:
        _open.reset(token)


@contextlib.contextmanager
def compiling(function: str) -> Iterator[None]:
    """Name the function that the records of the block belong to."""
    token = _function.set(function)
    try:
        yield
    finally:
        _function.reset(token)


def active() -> bool:
    """Whether anyone collects records. Ask before work that only a record needs."""
    return bool(_open.get())


def remark(copy: ir.Operation, why: str) -> None:
    """Say why `copy` is lowered otherwise than it was written; its later record will hold it."""
    for report in _open.get():
        report._remarks[copy] = why


def verdict(kernel: ir.Operation, argument: str, reason: str) -> None:
    """Record whether an argument of `kernel` is never written: `reason` says why that is not proven, or is empty."""
    for report in _open.get():
        name = ir.StringAttr(kernel.attributes["sym_name"]).value
        report.arguments.append(ArgumentRecord(_function.get(), name, argument, reason))


def note(copy: ir.Operation, expansion: Expansion, why: str = "", *, policy: bool = True) -> None:
    """Record that `copy` became `expansion`.

    Args:
        why: how it was lowered otherwise than written, and why.
        policy: whether the user gave the copy a cache policy.
    """
    if not active():
        return
    emitted: Counter[str] = Counter()
    for op, times in expansion.accesses():
        emitted[instruction(op)] += times
    for report in _open.get():
        remarks = filter(None, (report._remarks.pop(copy, ""), why))
        report.records.append(_record(copy, dict(emitted), policy, "; ".join(remarks)))


def _record(copy: ir.Operation, emitted: dict[str, int], policy: bool, remark: str) -> CopyRecord:
    kernel = enclosing_function(copy)
    atom = copy_atom(copy)
    tensors = [str(value.type) for value in operands(copy)[1:]]
    return CopyRecord(
        function=_function.get(),
        kernel=ir.StringAttr(kernel.attributes["sym_name"]).value if kernel else "",
        line=SourceLine.of(copy),
        tensor=next((t for t in tensors if ", gmem" in t), tensors[0] if tensors else ""),
        asked=(f"{atom.kind} {atom.parameters}" if atom else "") + (" with a cache policy" if policy else ""),
        emitted=emitted,
        remark=remark,
    )


def instruction(op: ir.Operation) -> str:
    """The PTX instruction that `op` becomes, without operands."""
    if op.name == "llvm.inline_asm":
        return ir.StringAttr(op.attributes["asm_string"]).value.split()[0]
    if not re.fullmatch(r"(llvm|nvvm)\.(load|store)(\.ext)?", op.name):
        return op.name
    text = str(op)
    loads = "load" in op.name
    (data,) = results(op) if loads else operands(op)[:1]
    match = re.fullmatch(r"vector<(\d+)x\D*(\d+).*>|\D*(\d+).*", str(data.type))
    count, width = (int(match[1] or 1), int(match[2] or match[3])) if match else (1, 32)
    bits = count * width
    register = 64 if width >= 64 else min(bits, 32)
    vector = f".v{bits // register}" if bits > register else ""
    space = ".nc" if loads and " invariant " in text else ""
    hint = ".L2::cache_hint" if "l2_cache_hint" in text else ""
    return f"{'ld' if loads else 'st'}.global{space}{hint}{vector}.b{register}"
