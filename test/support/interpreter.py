"""Executes the expansion of a copy, op by op, on addresses instead of data.

Layouts and pointers are as static as their types say; a stride that is only known at run time gets a number of its
own. What comes out is every access in the order of execution, with its address, its predicates and, for a store, where
each of its bytes was loaded from. That is the meaning of a copy, however it is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cutlass._mlir import ir

from cute_cache_policy.bindings import operands, results

__all__ = ["Access", "Trace", "trace"]

#: Stands for a run-time stride of divisibility d: d times this.
RUNTIME = 1009


@dataclass(frozen=True)
class Access:
    """One executed load or store.

    Attributes:
        root, offset: the address: the number of a function argument, and bits from where it points.
        bits: the width.
        guards: the predicates that it is under, each an address.
        data: for a store, the address of each byte it stores, as (root, byte).
    """

    root: int
    offset: int
    bits: int
    guards: tuple[Any, ...]
    data: tuple[Any, ...] = ()


@dataclass
class Trace:
    """The accesses of one run, and the ops that load."""

    loads: list[Access] = field(default_factory=list)
    stores: list[Access] = field(default_factory=list)
    mnemonics: list[str] = field(default_factory=list)


def trace(function: ir.Operation) -> Trace:
    """Run the body of a function whose arguments are memrefs or values."""
    run = _Run()
    block = function.regions[0].blocks[0]
    for number, argument in enumerate(block.arguments + block.arguments[0:0]):
        run.values[argument] = (number, 0) if "memref" in str(argument.type) else f"argument {number}"
    run.block(block)
    return run.trace


def _width(type_: str) -> int:
    """Bits of a value of an LLVM or built-in type."""
    count, element = re.fullmatch(r"(?:vector<(\d+)x)?!?[a-zA-Z]*?(\d+).*?>?", type_).groups()  # pyright: ignore
    return int(count or 1) * int(element)


def _element_bits(type_: str) -> int:
    """Bits of an element of a `!cute.ptr` or `!cute.memref`."""
    return int(re.search(r"<[a-zA-Z]+(\d+)", type_)[1])  # pyright: ignore[reportOptionalSubscript]


def _tuple(text: str, runtime: Callable[[str], Any]) -> Any:
    """A shape, stride or coordinate such as `(_,?{div=2})` as a nested tuple; None stands for `_`."""
    text = re.sub(r"\?(?:\{[^}]*\})?", lambda found: repr(runtime(found[0])), text)
    return ast.literal_eval(text.replace("_", "None"))


def _stride(text: str) -> int:
    divisor = re.search(r"div=(\d+)", text)
    return RUNTIME * int(divisor[1] if divisor else 1)


def _layout(type_: str) -> tuple[Any, Any]:
    """Shape and stride in a type with a layout."""
    shape, stride = re.search(r'"([^"]*):([^"]*)"', type_).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return _tuple(shape, _stride), _tuple(stride, _stride)


def _size(shape: Any) -> int:
    if isinstance(shape, int):
        return shape
    size = 1
    for extent in shape:
        size *= _size(extent)
    return size


def _index(coordinate: Any, shape: Any, stride: Any) -> int:
    """What a layout maps a coordinate to; an integer for a whole mode runs through it with the first mode fastest."""
    if coordinate is None:
        return 0
    if isinstance(shape, int):
        return coordinate * stride if isinstance(coordinate, int) else _index(coordinate[0], shape, stride)
    if isinstance(coordinate, tuple):
        return sum(map(_index, coordinate, shape, stride))
    total = 0
    for number, (extent, step) in enumerate(zip(shape, stride)):
        last = number == len(shape) - 1
        total += _index(coordinate if last else coordinate % _size(extent), extent, step)
        coordinate //= _size(extent)
    return total


class _Run:
    def __init__(self) -> None:
        self.trace = Trace()
        self.values: dict[ir.Value, Any] = {}
        self.guards: tuple[Any, ...] = ()

    def block(self, block: ir.Block) -> None:
        for op in block.operations:
            self.op(op.operation)

    def op(self, op: ir.Operation) -> None:
        handler = getattr(self, "_" + op.name.replace(".", "_"), None)
        if handler is not None:
            handler(op)
        elif results(op) and operands(op) and operands(op)[0] in self.values:
            # a view, a cast, a scalar: the same address or number
            self.values[results(op)[0]] = self.values[operands(op)[0]]

    def inputs(self, op: ir.Operation) -> list[Any]:
        return [self.values.get(value) for value in operands(op)]

    def give(self, op: ir.Operation, value: Any) -> None:
        self.values[results(op)[0]] = value

    # numbers and addresses

    def _arith_constant(self, op: ir.Operation) -> None:
        self.give(op, ir.IntegerAttr(op.attributes["value"]).value)

    _llvm_mlir_constant = _arith_constant

    def _arith_cmpi(self, op: ir.Operation) -> None:
        self.give(op, (str(op.attributes["predicate"]), *self.inputs(op)))

    def _cute_make_shape(self, op: ir.Operation) -> None:
        self.give(op, _tuple(str(results(op)[0].type).split('"')[1], _stride))

    def _cute_make_coord(self, op: ir.Operation) -> None:
        given = iter(self.inputs(op))
        self.give(op, _tuple(str(results(op)[0].type).split('"')[1], lambda _: next(given)))

    _cute_make_int_tuple = _cute_make_coord

    def _cute_static(self, op: ir.Operation) -> None:
        text = str(results(op)[0].type)
        self.give(op, None if ":" in text.split('"')[1] else _tuple(text.split('"')[1], _stride))

    def _cute_crd2idx(self, op: ir.Operation) -> None:
        coordinate, layout = operands(op)
        self.give(op, _index(self.values[coordinate], *_layout(str(layout.type))))

    def _cute_add_offset(self, op: ir.Operation) -> None:
        (root, offset), index = self.inputs(op)
        self.give(op, (root, offset + index * _element_bits(str(results(op)[0].type))))

    def _cute_ptr_load(self, op: ir.Operation) -> None:
        self.give(op, ("loaded", *self.inputs(op)))

    # control flow

    def _scf_for(self, op: ir.Operation) -> None:
        lower, upper, step = self.inputs(op)[:3]
        body = op.regions[0].blocks[0]
        for number in range(lower, upper, step):
            self.values[(body.arguments + body.arguments[0:0])[0]] = number
            self.block(body)

    def _scf_if(self, op: ir.Operation) -> None:
        outer = self.guards
        self.guards = (*outer, self.inputs(op)[0])
        self.block(op.regions[0].blocks[0])
        self.guards = outer

    # memory and data

    def load(self, op: ir.Operation, address: tuple[int, int], bits: int) -> tuple[Any, ...]:
        root, offset = address
        self.trace.loads.append(Access(root, offset, bits, self.guards))
        return tuple((root, offset // 8 + byte) for byte in range(bits // 8))

    def _llvm_load(self, op: ir.Operation) -> None:
        self.trace.mnemonics.append(op.name)
        self.give(op, self.load(op, self.inputs(op)[0], _width(str(results(op)[0].type))))

    _nvvm_load_ext = _llvm_load

    def _llvm_inline_asm(self, op: ir.Operation) -> None:
        text = ir.StringAttr(op.attributes["asm_string"]).value
        mnemonic = text.split()[0]
        vector, register = re.search(r"(?:\.v(\d))?\.b(\d+)$", mnemonic).groups()  # pyright: ignore
        self.trace.mnemonics.append(mnemonic)
        size, count = int(register), int(vector or 1)
        data = self.load(op, self.inputs(op)[0], size * count)
        pieces = [data[i * size // 8 : (i + 1) * size // 8] for i in range(count)]
        pieces = [(*piece, None) if size == 8 else piece for piece in pieces]  # a byte in a 16-bit register
        self.give(op, pieces[0] if vector is None else pieces)

    def _llvm_getelementptr(self, op: ir.Operation) -> None:
        root, offset = self.inputs(op)[0]
        self.give(op, (root, offset + 8 * ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])[0]))

    def _llvm_extractvalue(self, op: ir.Operation) -> None:
        self.give(op, self.inputs(op)[0][ir.DenseI64ArrayAttr(op.attributes["position"])[0]])

    def _llvm_trunc(self, op: ir.Operation) -> None:
        self.give(op, self.inputs(op)[0][: _width(str(results(op)[0].type)) // 8])

    def _vector_from_elements(self, op: ir.Operation) -> None:
        self.give(op, sum(self.inputs(op), ()))

    def _llvm_shufflevector(self, op: ir.Operation) -> None:
        vector = self.inputs(op)[0]
        mask = list(ir.DenseI32ArrayAttr(op.attributes["mask"]))
        size = len(vector) * 8 // _width(str(operands(op)[0].type))
        assert size, "expects elements of whole bytes"
        element = _element_bytes(str(operands(op)[0].type))
        self.give(op, sum((vector[i * element : (i + 1) * element] for i in mask), ()))

    def _llvm_store(self, op: ir.Operation) -> None:
        data, (root, offset) = self.inputs(op)
        self.trace.stores.append(Access(root, offset, 8 * len(data), self.guards, data))


def _element_bytes(type_: str) -> int:
    return _width(type_[type_.index("x") + 1 : -1]) // 8
