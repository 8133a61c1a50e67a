"""Passes and patterns written in Python, run by the PassManager that the DSL bundles.

An exception that leaves a Python-defined pass or rewrite pattern aborts the process: nanobind does not let it cross
the C++ frames in between. `run` and `apply_patterns` therefore catch everything on the inner side, fail the pass, and
raise on the outer side. That includes Ctrl-C, which could strike between any two instructions of a pass: it
is held back until the pass manager has returned.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading

# what `signal.signal` wraps: that makes enums of its arguments, which takes longer than running a pass on nothing
from _signal import signal as set_handler  # pyright: ignore[reportMissingImports]
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from cutlass._mlir import ir, rewrite
from cutlass._mlir.passmanager import PassManager

from .bindings import remembered_types
from .diagnostics import CachePolicyError

__all__ = ["Pass", "apply_patterns", "run"]

#: Rewrites the op and returns True, or leaves it alone and returns False.
Pattern = Callable[[ir.Operation, rewrite.PatternRewriter], bool]


class Pass(ABC):
    """A pass over a `builtin.module`. Subclasses are dataclasses; their fields are the options of the pass."""

    #: The name on the command line and in pass pipelines: the file name with hyphens.
    name: ClassVar[str]

    @abstractmethod
    def run(self, module: ir.Operation) -> None:
        """Transform or check `module`. Emit a diagnostic and raise `PassFailure` to fail (see `diagnostics.error`)."""

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field[Any]]:
        """The options of the pass, by their names in text."""
        return {f.name.replace("_", "-"): f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Pass:
        """Make the pass from textual options, such as `{"gpu-arch": "sm_90a"}`.

        Raises CachePolicyError for an option that the pass does not have, or a value that the option cannot take.
        """
        fields = cls.options()
        values: dict[str, Any] = {}
        for name, text in options.items():
            if name not in fields:
                known = ", ".join(sorted(fields)) or "no options"
                raise CachePolicyError(f"'{cls.name}' expects {known}, but got option '{name}'")
            values[fields[name].name] = _option_value(cls.name, name, fields[name].type, text)
        return cls(**values)


def _option_value(pass_name: str, option: str, annotation: object, text: str) -> Any:
    if "bool" not in str(annotation):
        return text
    try:
        return {"true": True, "1": True, "": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise CachePolicyError(f"'{pass_name}' expects true or false for '{option}', but got '{text}'") from None


class _Carrier:
    """Carries the first exception out of callbacks that C++ code calls."""

    def __init__(self) -> None:
        self.caught: BaseException | None = None

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function(*args)`, or None if that raised or an earlier call did."""
        if self.caught is None:
            try:
                return function(*args)
            except BaseException as exception:  # noqa: BLE001 - must not reach C++
                self.caught = exception
        return None

    def release(self) -> None:
        """Raise what was caught."""
        if self.caught is not None:
            raise self.caught


@contextlib.contextmanager
def _interrupt_held_back() -> Iterator[None]:
    """Deliver Ctrl-C after the block instead of inside it. Only the main thread ever receives it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[Any, ...]] = []
    previous = set_handler(signal.SIGINT, lambda *args: arrived.append(args))
    try:
        yield
    finally:
        set_handler(signal.SIGINT, previous if previous is not None else signal.default_int_handler)
        if arrived and callable(previous):
            previous(*arrived[0])


def add_pass(manager: PassManager, pass_: Pass, carrier: _Carrier) -> None:
    """Append a pass to a pass manager anchored on `builtin.module`."""

    def callback(op: Any, external_pass: Any) -> None:
        carrier.call(pass_.run, op.operation)
        if carrier.caught is not None:
            external_pass.signal_pass_failure()

    manager.add(callback, name=type(pass_).__name__, argument=pass_.name)


def run(module: ir.Module, passes: Sequence[Pass | str], *, verify: bool = True) -> None:
    """Run passes over a module: our own, and the compiler's by their textual pipeline elements.

    Raises:
        MLIRError: if a pass of the compiler fails.
        Exception: whatever a pass of ours raised; `PassFailure` after a diagnostic, which its `__context__` holds.
    """
    carrier = _Carrier()
    with module.context:
        manager = PassManager("builtin.module")
        manager.enable_verifier(verify)
        for pass_ in passes:
            if isinstance(pass_, str):
                manager.add(pass_)
            else:
                add_pass(manager, pass_, carrier)
        with _interrupt_held_back(), remembered_types():
            try:
                manager.run(module.operation)
            except ir.MLIRError:
                # an exception of ours keeps the diagnostics as its context
                carrier.release()
                raise
    carrier.release()


def apply_patterns(root: ir.Operation, patterns: Mapping[str, Pattern]) -> None:
    """Walk `root` once and apply the pattern registered for each op name. Ops without a pattern never reach Python.

    Raises whatever a pattern raised; patterns for further ops are then not run.
    """
    carrier = _Carrier()

    def guard(pattern: Pattern) -> Callable[[Any, rewrite.PatternRewriter], bool]:
        # MLIR takes a falsy return value for success
        return lambda op, rewriter: not carrier.call(pattern, op.operation, rewriter)

    with root.context:
        pattern_set = rewrite.RewritePatternSet()
        for name, pattern in patterns.items():
            pattern_set.add(name, guard(pattern))
        rewrite.walk_and_apply_patterns(root, pattern_set.freeze())
    carrier.release()
