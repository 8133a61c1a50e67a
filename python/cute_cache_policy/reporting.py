"""What became of every copy: records that passes add while they work, collected by whoever asked for a report.

A pass that decides what a copy becomes calls `note(copy, expansion)` while `copy` is still in the IR, after it has
replaced loads in the expansion: `note` counts the accesses of global memory that stand there. A copy that is lowered
otherwise than the user wrote it gets its reason by `note(copy, expansion, "why")`. Copies that no pass notes are
recorded as the compiler expands them, once all passes are through. Without an open report, all that costs one look at a
context variable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from cutlass._mlir import ir

from .asm import async_form
from .atoms import COPY_OPS, PolicyFlow, compiler_sees_policy, copy_atom, policy_setter
from .bindings import enclosing_function, integer_constant, memory_space, operands, results, type_text, walk
from .dataflow import CallGraph
from .diagnostics import SourceLine
from .expansion import Expander, Expansion
from .names import kernel_name
from .ptx import CONSTANT_POLICIES, Target

__all__ = [
    "ArgumentRecord",
    "CopyRecord",
    "Report",
    "active",
    "compiling",
    "note",
    "note_rest",
    "open_report",
    "verdict",
]


@dataclass(frozen=True)
class CopyRecord:
    """What became of one copy.

    Attributes:
        function: the function that was compiled.
        kernel: the kernel, or device function, that the copy stands in.
        line: where the copy stands; not `exact` where it is the kernel's, for lack of line information.
        tensor: the type of the tensor in global memory (the source, if none is).
        asked: the atom that the user copied with.
        policy: the cache policy that the user gave: `evict_first` and the like for a constant, `computed` for any
            other, empty if none.
        emitted: how often each instruction was emitted, such as `{"ld.global.nc.L2::cache_hint.v4.b32": 8}`; loops of
            the user count once.
        remark: how the copy was lowered otherwise than it was written, and why; empty if it was not.
        lint: what can go wrong with what was emitted; empty if nothing is known.
    """

    function: str
    kernel: str
    line: SourceLine | None
    tensor: str
    asked: str
    policy: str
    emitted: dict[str, int]
    remark: str = ""
    lint: str = ""


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
    _compiles: list[tuple[str, list[CopyRecord], list[ArgumentRecord]]] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[CopyRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __str__(self) -> str:
        lines = []
        for kernel in dict.fromkeys((r.function, r.kernel) for r in (*self.records, *self.arguments)):
            lines += ["", f"{kernel[1]} in {kernel[0]}"]
            rows = [("line", "copies", "policy", "emitted", "remark")]
            lints = []
            for record in self.records:
                if (record.function, record.kernel) == kernel:
                    rows.append(_row(record))
                    if record.lint and record.lint not in lints:
                        lints.append(record.lint)
            widths = [max(map(len, column)) for column in zip(*rows)]
            if len(rows) > 1:
                lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
            verdicts = [a for a in self.arguments if (a.function, a.kernel) == kernel]
            lines += [f"argument {a.argument}: {a.reason or 'never written, loads are invariant'}" for a in verdicts]
            lines += [f"warning: {lint}" for lint in lints]
        if any(record.line and not record.line.exact for record in self.records):
            lines += [
                "",
                "A line with * is that of the kernel: compile with --generate-line-info to see those of copies.",
            ]
        return "\n".join(lines[1:]) or "no copies"

    def _end_compile(self, function: str, copies: int, arguments: int) -> None:
        """Forget the records from `copies` and `arguments` on if the same compile is known already."""
        compile_ = (function, self.records[copies:], self.arguments[arguments:])
        if compile_ in self._compiles:
            del self.records[copies:], self.arguments[arguments:]
        self._compiles.append(compile_)


def _row(record: CopyRecord) -> tuple[str, str, str, str, str]:
    line = f"{record.line}{'' if record.line.exact else ' *'}" if record.line else "unknown"
    emitted = ", ".join(f"{count} x {instruction}" for instruction, count in record.emitted.items())
    copies = f"{record.asked} of {record.tensor.removeprefix('!cute.')}"
    return line, copies, record.policy or "none", emitted or "nothing known", record.remark


_open: ContextVar[tuple[Report, ...]] = ContextVar("cute_cache_policy_reports", default=())
_compile: ContextVar[tuple[str, str]] = ContextVar("cute_cache_policy_compile", default=("", ""))


@contextlib.contextmanager
def open_report() -> Iterator[Report]:
    """Collect a record of every copy that is compiled in the block, in this thread.

    A call of a `@cute.jit` function that is compiled already is traced again; what it adds is recorded once.
    `CUTE_CACHE_POLICY_REPORT=1` in the environment prints such a report of every compile to standard error.
    """
    report = Report()
    token = _open.set((*_open.get(), report))
    try:
        yield report
    finally:
        _open.reset(token)


@contextlib.contextmanager
def compiling(function: str, gpu_arch: str) -> Iterator[None]:
    """Name the function that the records of the block belong to, and its target."""
    if _wants_print():
        with open_report() as report, _compiling(function, gpu_arch):
            try:
                yield
            finally:
                print(report, file=sys.stderr)
    else:
        with _compiling(function, gpu_arch):
            yield


@contextlib.contextmanager
def _compiling(function: str, gpu_arch: str) -> Iterator[None]:
    token = _compile.set((function, gpu_arch))
    starts = [(report, len(report.records), len(report.arguments)) for report in _open.get()]
    try:
        yield
    finally:
        _compile.reset(token)
        for report, copies, arguments in starts:
            report._end_compile(function, copies, arguments)


def _wants_print() -> bool:
    return os.environ.get("CUTE_CACHE_POLICY_REPORT", "0") not in ("", "0")


def active() -> bool:
    """Whether anyone collects records. Ask before work that only a record needs."""
    return bool(_open.get()) or _wants_print()


def verdict(kernel: ir.Operation, argument: str, reason: str) -> None:
    """Record whether an argument of `kernel` is never written: `reason` says why that is not proven, or is empty."""
    for report in _open.get():
        report.arguments.append(ArgumentRecord(_compile.get()[0], kernel_name(kernel), argument, reason))


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
        text, pieces = _for_target(op)
        emitted[text] += times * pieces
    for report in _open.get():
        report.records.append(_record(copy, dict(emitted), policy, why))


def note_rest(module: ir.Operation) -> None:
    """Record the copies of global memory that are left in a module, as the compiler expands them."""
    flow, expander = PolicyFlow(CallGraph(module)), Expander()
    for op in walk(module):
        if op.name not in COPY_OPS or "gmem" not in map(memory_space, operands(op)):
            continue
        with contextlib.suppress(ir.MLIRError):
            expansion, _ = expander.expand(op, sets_policy=compiler_sees_policy(op))
            policy = flow.trace(op).carries_policy
            dropped = policy and not any("L2::cache_hint" in instruction(access) for access, _ in expansion.accesses())
            note(op, expansion, "cache policy dropped" if dropped else "", policy=policy)


def _record(copy: ir.Operation, emitted: dict[str, int], policy: bool, remark: str) -> CopyRecord:
    kernel = enclosing_function(copy)
    atom = copy_atom(copy)
    tensors = operands(copy)[1:]
    non_coherent = any(".nc" in text for text in emitted)
    return CopyRecord(
        function=_compile.get()[0],
        kernel=kernel_name(kernel) if kernel else "",
        line=SourceLine.of(copy),
        tensor=str(next((t for t in tensors if memory_space(t) == "gmem"), tensors[0]).type),
        asked=str(atom) if atom else "",
        policy=_policy(copy) if policy else "",
        emitted=emitted,
        remark=remark,
        lint=LINT if non_coherent and kernel and _waits_for_grid(kernel) else "",
    )


#: What can go wrong with a non-coherent load under programmatic dependent launch.
LINT = (
    "the kernel waits for the one in front of it (griddepcontrol.wait) and has non-coherent loads: where these read "
    "what that one writes, the promise of invariant=True is broken; and ptxas moves them below the wait, so that a "
    "prefetch in front of it is none"
)


def _waits_for_grid(kernel: ir.Operation) -> bool:
    return any("griddepcontrol" in str(op) and "wait" in str(op) for op in walk(kernel)[1:] if not len(op.regions))


def _policy(copy: ir.Operation) -> str:
    """What is known of the policy of a copy that has one."""
    setter = policy_setter(copy)
    constant = integer_constant(operands(setter)[1]) if setter else None
    if constant is None:
        return "computed"
    bits = constant % 2**64
    names = (priority.name.lower() for priority, known in CONSTANT_POLICIES.items() if known == bits)
    return next(names, hex(bits))


def _for_target(op: ir.Operation) -> tuple[str, int]:
    """The instruction that `op` becomes on the target of this compile, and how many of it."""
    text, arch = instruction(op), _compile.get()[1]
    if arch and Target.parse(arch).sm < 100:
        for wide, half in ((".v8.b32", ".v4.b32"), (".v4.b64", ".v2.b64")):
            if text.endswith(wide):
                return text.removesuffix(wide) + half, 2
    return text, 1


def instruction(op: ir.Operation) -> str:
    """The PTX instruction that `op` becomes, without operands."""
    if op.name == "llvm.inline_asm":
        return ir.StringAttr(op.attributes["asm_string"]).value.split()[0]
    if op.name == "nvvm.cp.async.shared.global":
        return dataclasses.replace(async_form(op), cache_hint=False).mnemonic
    if not re.fullmatch(r"(llvm|nvvm)\.(load|store)(\.ext)?", op.name):
        return op.name
    text = str(op)
    loads = "load" in op.name
    (data,), address = (results(op), operands(op)[0]) if loads else (operands(op)[:1], operands(op)[1])
    match = re.fullmatch(r"vector<(\d+)x\D*(\d+).*>|\D*(\d+).*", str(data.type))
    count, width = (int(match[1] or 1), int(match[2] or match[3])) if match else (1, 32)
    bits = count * width
    register = 64 if width >= 64 else min(bits, 32)
    vector = f".v{bits // register}" if bits > register else ""
    # none for an address that may be of any memory
    space = ".global" if type_text(address.type) == "!llvm.ptr<1>" else ""
    space += ".nc" if loads and " invariant " in text else ""
    hint = ".L2::cache_hint" if "l2_cache_hint" in text else ""
    return f"{'ld' if loads else 'st'}{space}{hint}{vector}.b{register}"
