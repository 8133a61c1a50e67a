"""Small helpers over the MLIR Python bindings that the DSL bundles (`cutlass._mlir`).

Reading a value through the bindings (`op.operands[i]`, `op.results[i]`, `block.arguments[i]`) runs the *value
casters* that the DSL registers; for a memref they build a `cute.Tensor`, which emits a `cute.get_iter` op. A pass must
not emit ops by looking, so every read here goes through `raw`, which hands out plain `ir.Value` objects.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

from cutlass._mlir import ir

__all__ = [
    "attributes",
    "defining_op",
    "enclosing",
    "enclosing_function",
    "integer_constant",
    "memory_space",
    "operands",
    "raw",
    "remembered_types",
    "results",
    "type_text",
    "walk",
]


def raw(values: Any) -> list[ir.Value]:
    """The values of an operand, result or block argument list, uncast.

    Concatenating two such lists gives a Python list of plain values: `__add__` is the one reading access of
    the bindings' list classes that does not run value casters.
    """
    return values + values[0:0]


def operands(op: ir.Operation) -> list[ir.Value]:
    """The operands of `op`, uncast."""
    return raw(op.operands)


def results(op: ir.Operation) -> list[ir.Value]:
    """The results of `op`, uncast."""
    return raw(op.results)


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that `value` is a result of; None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def integer_constant(value: ir.Value) -> int | None:
    """The signed number that `value` is, if it is a constant."""
    op = defining_op(value)
    if op is None or op.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    try:
        return ir.IntegerAttr(op.attributes["value"]).value
    except ValueError:
        # a vector, or a number with a fraction
        return None


def attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """The attributes of `op` by their names."""
    return {name: op.attributes[name] for name in op.attributes}


_type_texts: contextvars.ContextVar[dict[ir.Type, str] | None] = contextvars.ContextVar("type_texts", default=None)


@contextlib.contextmanager
def remembered_types() -> Iterator[None]:
    """Print no type twice in the block: for the types of the DSL that takes longer than most else that a pass does."""
    if _type_texts.get() is not None:
        yield
        return
    token = _type_texts.set({})
    try:
        yield
    finally:
        # a type keeps its context alive
        _type_texts.reset(token)


def type_text(type_: ir.Type) -> str:
    """A type as it is printed."""
    texts = _type_texts.get()
    if texts is None:
        return str(type_)
    text = texts.get(type_)
    if text is None:
        text = texts[type_] = str(type_)
    return text


def memory_space(tensor: ir.Value) -> str:
    """`gmem`, `smem`, `rmem`, ... of a tensor; empty if its type does not say."""
    text = type_text(tensor.type)
    return next((space for space in ("gmem", "smem", "rmem", "tmem") if f", {space}" in text), "")


def enclosing(op: ir.Operation) -> Iterator[ir.Operation]:
    """The operations around `op`, innermost first."""
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


#: Operations that a kernel, a device function or a host function of the DSL is made of.
FUNCTION_OPS = frozenset({"cuda.kernel", "cuda.func", "lir.func", "func.func", "gpu.func", "llvm.func"})


def enclosing_function(op: ir.Operation) -> ir.Operation | None:
    """The function-like operation around `op`."""
    return next((parent for parent in enclosing(op) if parent.name in FUNCTION_OPS), None)


def walk(op: ir.Operation) -> list[ir.Operation]:
    """`op` and every operation below it, in pre-order."""
    found: list[ir.Operation] = []

    def visit(visited: ir.Operation) -> ir.WalkResult:
        found.append(visited)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
