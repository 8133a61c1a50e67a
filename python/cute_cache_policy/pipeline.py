"""Textual pass pipelines, `builtin.module(element, element, ...)`, that mix our passes and the compiler's own.

The compiler's pipeline parser does not know our passes, and a pass in a place where it cannot run may abort the process
instead of failing. So the text is taken apart here, far enough to find both; what is inside an element of the
compiler's remains for its own parser.
"""

from __future__ import annotations

import functools
import re

from cutlass._mlir import ir
from cutlass._mlir.passmanager import PassManager

from .diagnostics import CachePolicyError
from .pass_manager import Pass
from .passes import PASSES
from .ptx import Target

__all__ = ["parse"]


def parse(text: str, gpu_arch: str) -> list[Pass | str]:
    """The passes of a pipeline, for `pass_manager.run`: ours as objects, each of the compiler's as its text.

    `gpu_arch` is for passes of ours that have such an option and do not set it. Raises CachePolicyError.
    """
    match = re.fullmatch(r"builtin\.module\((.*)\)", text.strip(), re.DOTALL)
    if match is None:
        raise CachePolicyError(f"a pass pipeline expects 'builtin.module(...)', but got '{text}'")
    return [_parse_element(element, gpu_arch) for element in _split(match[1])]


def _split(text: str) -> list[str]:
    """The elements between top-level commas."""
    elements, depth = [""], 0
    for character in text:
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            elements.append("")
        else:
            elements[-1] += character
    return [element.strip() for element in elements if element.strip()]


def _parse_element(text: str, gpu_arch: str) -> Pass | str:
    match = re.fullmatch(r"([\w-]+)(?:\{(.*)\})?", text, re.DOTALL)
    if match is not None and match[1] in PASSES:
        return _own_pass(PASSES[match[1]], match[2] or "", gpu_arch)
    _check_nesting(text)
    with ir.Context():
        try:
            PassManager("builtin.module").add(text)
        except ValueError as failure:
            reason = re.sub(
                r"^(MLIR Textual PassPipeline Parser:[\d:]* error|<Pass-Options-Parser>): ", "", str(failure)
            )
            raise CachePolicyError(f"cannot run '{text}': {reason.strip().splitlines()[0]}") from None
    return text


def _own_pass(kind: type[Pass], options: str, gpu_arch: str) -> Pass:
    """A pass of ours; `options` are separated by spaces, as in MLIR."""
    given: dict[str, str] = {}
    for option in options.split():
        name, _, value = option.partition("=")
        given[name] = value
    if "gpu-arch" in kind.options():
        given.setdefault("gpu-arch", gpu_arch)
        try:
            Target.parse(given["gpu-arch"])
        except ValueError as failure:
            raise CachePolicyError(f"'{kind.name}' {failure}") from None
    return kind.from_options(given)


def _check_nesting(text: str) -> None:
    """Refuse what aborts the process, or is not found, inside another element: pipelines of passes, and our passes."""
    for name in re.findall(r"[\w-]+", re.sub(r"^[\w.$-]+", "", text)):
        if name in PASSES or _is_pipeline(name):
            raise CachePolicyError(f"'{name}' expects to stand directly in 'builtin.module(...)', but got '{text}'")


@functools.cache
def _is_pipeline(name: str) -> bool:
    """Whether the compiler knows `name` as a pipeline of several passes, such as `cute-to-nvvm`."""
    with ir.Context():
        try:
            expanded = str(PassManager.parse(f"builtin.module({name})"))
        except ValueError:
            return False
    return not re.match(rf"builtin\.module\({re.escape(name)}[{{)]", expanded)
