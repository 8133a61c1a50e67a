"""The one path by which passes speak: an error at an operation.

A pass calls `error` and its text reaches whoever runs it as an MLIR diagnostic: the driver prints it or matches it
against `expected-error`, the compile option turns it into an exception at the user's `cute.compile`.
"""

from __future__ import annotations

import re

from cutlass._mlir import ir

__all__ = ["CachePolicyError", "CachePolicyWarning", "PassFailure", "error", "source_line"]


class CachePolicyError(Exception):
    """An error of this package that its user can act on; the text says what was expected and what was found."""


class CachePolicyWarning(UserWarning):
    """A copy that the plugin compiles otherwise than it was written, and why."""


class PassFailure(Exception):
    """Raised inside a pass after it has emitted a diagnostic; never leaves the pass manager."""


def error(op: ir.Operation, message: str) -> PassFailure:
    """Emit `'<name of op>' op <message>` at the location of `op`.

    Returns the exception to raise: `raise error(op, "expects ..., but got ...")`.
    """
    op.location.emit_error(f"'{op.name}' op {message}")
    return PassFailure(message)


def source_line(op: ir.Operation) -> str | None:
    """`file:line` of the user's program for `op`, or None if the op carries no location.

    Ops carry one under `--generate-line-info`; without it only the kernel op does.
    """
    match = re.search(r'"([^"]+)":(\d+)', str(op.location))
    return f"{match[1]}:{match[2]}" if match else None


def format_failure(failure: ir.MLIRError) -> str:
    """The diagnostics of a failed pass as `file:line: message` lines."""
    lines = []
    for diagnostic in failure.error_diagnostics:
        match = re.search(r'"([^"]+)":(\d+)', str(diagnostic.location))
        lines.append(f"{match[1]}:{match[2]}: {diagnostic.message}" if match else diagnostic.message)
    return "\n".join(lines) or str(failure)
