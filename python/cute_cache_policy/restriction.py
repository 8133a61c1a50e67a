"""`restrict`: mark single arguments of a kernel for `infer-invariant-copy`.

A mark is an attribute on a cast of the argument to its own type, an op without effect that the compiler removes. The
module gets the attribute as well, so that a trace need not be searched for marks.
"""

from __future__ import annotations

from typing import TypeVar

from cutlass import cute
from cutlass._mlir import ir

from .bindings import enclosing, operands, walk
from .diagnostics import CachePolicyError
from .origins import AddressFlow

__all__ = ["marked_arguments", "restrict", "was_used_in"]

MARK, MARK_OP = "cute_cache_policy.restrict", "builtin.unrealized_conversion_cast"

Memory = TypeVar("Memory", cute.Tensor, cute.Pointer)

#: Whether any trace of this process has a mark: it spares the others a look at their modules.
_ever_used = False


def restrict(memory: Memory) -> Memory:
    """Promise that a tensor or pointer, an argument of the kernel in which this is called, is read-only memory.

    While the kernel runs, no other argument overlaps it, and nobody else writes it: what `const __restrict__` says in
    CUDA C++. Loads from it become non-coherent, whether or not the option `--infer-invariant-copy` is on; with the
    option, other arguments of the kernel are then left alone. The kernel itself may write it: then its loads stay
    coherent.

    Returns `memory`. Raises CachePolicyError for anything else.
    """
    global _ever_used
    if not isinstance(memory, (cute.Tensor, cute.Pointer)):
        raise CachePolicyError(f"'restrict' expects a tensor or a pointer, but got {memory!r}")
    _ever_used = True
    value: ir.Value = memory.value
    mark = ir.Operation.create(MARK_OP, [value.type], [value])
    *_, module = enclosing(mark)
    module.attributes[MARK] = mark.attributes[MARK] = ir.UnitAttr.get()
    return memory


def was_used_in(module: ir.Operation) -> bool:
    """Whether an argument of any kernel in a traced module is marked."""
    return _ever_used and MARK in module.attributes


def marked_arguments(kernel: ir.Operation, flow: AddressFlow) -> set[ir.Value]:
    """The arguments of `kernel` that its body marks."""
    marks = [op for op in walk(kernel) if op.name == MARK_OP and MARK in op.attributes]
    return {argument for mark in marks for argument in flow.origins(operands(mark)[0]).arguments}
