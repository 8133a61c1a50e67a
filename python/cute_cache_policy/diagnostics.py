"""The one path by which passes speak: an error, or a warning, at an operation.

A pass calls `error` and its text reaches whoever runs it as an MLIR diagnostic: the driver prints it or matches it
against `expected-error`, the compile option turns it into an exception at the user's `cute.compile`.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from cutlass._mlir import ir

from .bindings import enclosing

__all__ = ["CachePolicyError", "CachePolicyWarning", "PassFailure", "SourceLine", "error", "warn"]


class CachePolicyError(Exception):
    """An error of this package that its user can act on; the text says what was expected and what was found."""


class CachePolicyWarning(UserWarning):
    """A copy that the plugin compiles otherwise than it was written, and why."""


class PassFailure(CachePolicyError):
    """A pass failed, and has emitted a diagnostic that says why.

    Attributes:
        line: the line of the user's program that the diagnostic is about, if it is known.
    """

    def __init__(self, message: str, line: SourceLine | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's program.

    Attributes:
        file, number: where it is.
        exact: whether it is the line of the op itself. Ops carry one under `--generate-line-info`; without it, some
            releases of the DSL give lines to kernels alone, and the line of the kernel stands in.
    """

    file: str
    number: int
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"

    @classmethod
    def of(cls, op: ir.Operation) -> SourceLine | None:
        """The line of `op`, or else that of the closest op around it that carries one."""
        for candidate in (op, *enclosing(op)):
            if match := re.search(r'"([^"]+)":(\d+)', str(candidate.location)):
                return cls(match[1], int(match[2]), exact=candidate is op)
        return None


def error(op: ir.Operation, message: str) -> PassFailure:
    """Emit `'<name of op>' op <message>` at the location of `op`.

    Returns the exception to raise: `raise error(op, "expects ..., but got ...")`.
    """
    text = f"'{op.name}' op {message}"
    op.location.emit_error(text)
    return PassFailure(text, SourceLine.of(op))


#: What Python's filters remember of the warnings that they have shown, by file.
_shown: dict[str, dict[Any, Any]] = {}


def warn(op: ir.Operation, message: str) -> None:
    """Warn `'<name of op>' op <message>` at the user's line, as a `CachePolicyWarning`.

    Python's warning machinery and not MLIR's: the bindings drop the diagnostics of a pass that succeeds. By default it
    shows a warning once: a jit function is traced at every call.
    """
    line = SourceLine.of(op)
    file, number = (line.file, line.number) if line else ("<unknown>", 0)
    shown = _shown.setdefault(file, {})
    warnings.warn_explicit(f"'{op.name}' op {message}", CachePolicyWarning, file, number, registry=shown)
