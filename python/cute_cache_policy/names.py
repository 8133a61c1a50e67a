"""What the user calls a kernel and its arguments. The IR knows the line of the kernel, the source file the names."""

from __future__ import annotations

import ast
import functools
import linecache

from cutlass._mlir import ir

from .bindings import raw
from .diagnostics import SourceLine

__all__ = ["argument_name", "kernel_name"]


@functools.lru_cache(maxsize=256)
def _definition(file: str, line: int) -> tuple[str, tuple[str, ...]] | None:
    """The function that starts at a line, and its parameters, without those that are compile-time constants."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line <= node.lineno:
                parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = (p.arg for p in parameters if not (p.annotation and "Constexpr" in ast.unparse(p.annotation)))
                return node.name, tuple(name for name in names if name != "self")
    return None


def _definition_of(kernel: ir.Operation) -> tuple[str, tuple[str, ...]] | None:
    line = SourceLine.of(kernel)
    return _definition(line.file, line.number) if line else None


def kernel_name(kernel: ir.Operation) -> str:
    """The name of the Python function that a kernel was traced from, or else its symbol."""
    definition = _definition_of(kernel)
    return definition[0] if definition else ir.StringAttr(kernel.attributes["sym_name"]).value


def argument_name(argument: ir.Value) -> str:
    """The quoted name of the parameter that became a kernel argument, or else `argument <number>`.

    A parameter that became several arguments (a tuple, a structure) shifts the others, and their names are not sure.
    """
    block, number = argument.owner, ir.BlockArgument(argument).arg_number
    assert isinstance(block, ir.Block)
    definition = _definition_of(block.owner.operation)
    names = definition[1] if definition else ()
    return f"'{names[number]}'" if len(names) == len(raw(block.arguments)) else f"argument {number}"
