"""`restrict`: mark single arguments of a kernel for `infer-invariant-copy`.

A mark is an attribute on a `cute.get_iter` of the tensor, an op without effect that the compiler removes. The module
gets the attribute as well, so that a trace need not be searched for marks.
"""

from __future__ import annotations

from typing import TypeVar

from cutlass import cute
from cutlass._mlir import ir

from .bindings import enclosing, operands, walk
from .origins import AddressFlow

__all__ = ["marked_arguments", "restrict", "was_used_in"]

MARK = "cute_cache_policy.restrict"

TensorType = TypeVar("TensorType", bound=cute.Tensor)


#: Whether any trace of this process has a mark: it spares the others a look at their modules.
_ever_used = False


def restrict(tensor: TensorType) -> TensorType:
    """Promise that `tensor`, an argument of the kernel in which this is called, is read-only memory while it runs.

    No other argument overlaps it, and nobody else writes it: what `const __restrict__` says in CUDA C++. Loads from it
    become non-coherent, whether or not the option `--infer-invariant-copy` is on; with the option, other arguments of
    the kernel are then left alone. The kernel itself may write the tensor: then its loads stay coherent.

    Returns `tensor`.
    """
    global _ever_used
    _ever_used = True
    iterator = ir.Operation.create("cute.get_iter", [tensor.iterator.type], [tensor.value])
    *_, module = enclosing(iterator)
    module.attributes[MARK] = iterator.attributes[MARK] = ir.UnitAttr.get()
    return tensor


def was_used_in(module: ir.Operation) -> bool:
    """Whether an argument of any kernel in a traced module is marked."""
    return _ever_used and MARK in module.attributes


def marked_arguments(kernel: ir.Operation, flow: AddressFlow) -> set[ir.Value]:
    """The arguments of `kernel` that its body marks."""
    marks = [op for op in walk(kernel) if op.name == "cute.get_iter" and MARK in op.attributes]
    return {argument for mark in marks for argument in flow.origins(operands(mark)[0]).arguments}
