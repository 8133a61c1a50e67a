"""Diagnostics, and the comments that expect them: `-verify-diagnostics`.

    // expected-error@+1 {{expects a target}}
    cute.copy(...)

A comment expects one diagnostic of its kind (`error`, `warning`, `note`, `remark`) that contains the text, on its own
line or on the one it names: `@+N` and `@-N` count lines, `@above` and `@below` mean the closest line without such
a comment, `@unknown` a diagnostic without a place in the file. As in MLIR, a diagnostic that no comment expects and a
comment that stays without a diagnostic are both failures; unlike there, one comment does not cover two diagnostics.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from cutlass._mlir import ir

from .diagnostics import CachePolicyError

__all__ = ["INPUT", "Diagnostic", "mismatches"]

#: What the parser of the compiler calls the file that it reads.
INPUT = "-"

_DIRECTIVE = re.compile(r"expected-(error|warning|note|remark) *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*?)\}\}")


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic, or the expectation of one (then `message` is a part of the text).

    Attributes:
        severity: `error`, `warning`, `note` or `remark`.
        line: the line in `file`, or None if the diagnostic has no place.
        file: `INPUT`, or a file that the IR names in a location.
        column: the column in `line`, or None if it is not known.
    """

    severity: str
    message: str
    line: int | None
    file: str = INPUT
    column: int | None = None

    @classmethod
    def collect(cls, diagnostics: Iterable[ir.Diagnostic | ir.DiagnosticInfo]) -> list[Diagnostic]:
        """Diagnostics of the compiler, each followed by its notes except the one that only prints the operation."""
        found = []
        for diagnostic in diagnostics:
            file, line, column = _place(diagnostic.location) or (INPUT, None, None)
            found.append(cls(diagnostic.severity.name.lower(), diagnostic.message.strip(), line, file, column))
            notes = (note for note in diagnostic.notes if not note.message.startswith("see current operation"))
            found += cls.collect(notes)
        return found

    @classmethod
    def of_warning(cls, warning: warnings.WarningMessage) -> Diagnostic:
        """A warning of one of our passes (see `diagnostics.warn`)."""
        return cls("warning", str(warning.message), warning.lineno or None, warning.filename)

    def text(self, input_name: str) -> str:
        """One line: place, severity and message."""
        file = input_name if self.file == INPUT else self.file
        place = [str(part) for part in (file, self.line, self.column) if part is not None]
        return f"{':'.join(place)}: {self.severity}: {' '.join(self.message.split())}"

    def fulfills(self, expected: Diagnostic) -> bool:
        """Whether this is the diagnostic that `expected` is about."""
        same_place = (self.file, self.line, self.severity) == (expected.file, expected.line, expected.severity)
        return same_place and expected.message in self.message


def _place(location: ir.Location) -> tuple[str, int, int] | None:
    if location.is_a_file():
        return location.filename, location.start_line, location.start_col
    if location.is_a_name():
        return _place(location.child_loc)
    if location.is_a_callsite():
        return _place(location.callee)
    if location.is_a_fused():
        return next(filter(None, map(_place, location.locations)), None)
    return None


def _expectations(text: str) -> list[Diagnostic]:
    """The expectations in a file. Raises CachePolicyError for a comment that is not well formed."""
    lines = text.splitlines()
    marked = [number for number, line in enumerate(lines, 1) if "expected-" in line]
    plain = sorted(set(range(1, len(lines) + 1)) - set(marked))
    found = []
    for number in marked:
        directives = _DIRECTIVE.findall(lines[number - 1])
        if len(directives) != lines[number - 1].count("expected-"):
            got = lines[number - 1].strip()
            raise CachePolicyError(f"line {number} expects 'expected-<kind>@<line> {{{{text}}}}', but got '{got}'")
        for severity, where, message in directives:
            line: int | None = number
            if where == "above":
                line = max((n for n in plain if n < number), default=0)
            elif where == "below":
                line = min((n for n in plain if n > number), default=0)
            elif where == "unknown":
                line = None
            elif where:
                line = number + int(where)
            found.append(Diagnostic(severity, message, line))
    return found


def mismatches(text: str, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Errors about diagnostics that no comment in `text` expects, and about comments left without one."""
    pending = _expectations(text)
    wrong = []
    for diagnostic in diagnostics:
        met = next(filter(diagnostic.fulfills, pending), None)
        if met is not None:
            pending.remove(met)
        else:
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(dataclasses.replace(diagnostic, severity="error", message=message))
    for expected in pending:
        message = f"expected {expected.severity} was not produced: {expected.message}"
        wrong.append(dataclasses.replace(expected, severity="error", message=message))
    return wrong
