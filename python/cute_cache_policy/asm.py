"""Emitting `ptx.GlobalLoad` as `llvm.inline_asm`.

The asm has no side effects: LLVM and ptxas may then move independent loads past stores, which is what a non-coherent
load is for. Registers are 32 bits wide where the data allows it, as in the compiler's own non-coherent loads; 64-bit
registers hold 64-bit elements alone, because register pairs fragment the register file.
"""

from __future__ import annotations

import dataclasses

from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm

from .bindings import operands, results
from .ptx import GlobalLoad, Target

__all__ = ["emit_load", "load_shape"]

#: Inline asm constraint of a register, by its width in bits. There is none for 8 bits: `ld.b8` takes a 16-bit register.
_CONSTRAINT = {16: "h", 32: "r", 64: "l"}


def _bits(type_: ir.Type) -> tuple[int, int]:
    """The width of a value of `type_` and of one of its elements, in bits."""
    if isinstance(type_, ir.VectorType):
        element = _bits(type_.element_type)[1]
        count = 1
        for extent in type_.shape:
            count *= extent
        return count * element, element
    assert isinstance(type_, (ir.IntegerType, ir.FloatType)), type_
    return type_.width, type_.width


def load_shape(bits: int, element_bits: int) -> GlobalLoad:
    """The registers of a load of `bits` (8 to 256) bits of elements of `element_bits` bits each."""
    register = 64 if element_bits >= 64 else min(bits, 32)
    return GlobalLoad(register, bits // register)


def emit_load(load: ir.Operation, policy: ir.Value, target: Target) -> None:
    """Replace a `llvm.load` by the non-coherent load with a cache hint of the same memory.

    Where `target` has no 256-bit loads, two of 128 bits take its place: inline asm is not legalized later.
    """
    (result,) = results(load)
    shape = dataclasses.replace(load_shape(*_bits(result.type)), cache_hint=True)
    pieces = 2 if shape.bits == 256 and target.sm < 100 else 1
    piece = dataclasses.replace(shape, vector=shape.vector // pieces)
    (address,) = operands(load)
    with ir.InsertionPoint(load), load.location:
        registers: list[ir.Value] = []
        for number in range(pieces):
            registers += _emit(piece, address, number * piece.bits // 8, policy)
        data = _concatenate(registers, shape.register_bits)
        if data.type != result.type:
            data = _create(llvm.BitcastOp, result.type, data)
    result.replace_all_uses_with(data)
    load.erase()


def _create(op: type, *args: object, **kwargs: object) -> ir.Value:
    return results(op(*args, **kwargs).operation)[0]


def _emit(load: GlobalLoad, address: ir.Value, offset: int, policy: ir.Value) -> list[ir.Value]:
    """The destination registers of one load at `address + offset` bytes."""
    width = max(load.register_bits, 16)
    register = ir.IntegerType.get_signless(width)
    count = load.vector
    names = [f"${i}" for i in range(count)]
    where = f"${count}+{offset}" if offset else f"${count}"
    text = load.text(names, where, f"${count + 1}")
    constraints = ",".join([f"={_CONSTRAINT[width]}"] * count + ["l", "l"])
    single = count == 1
    type_ = register if single else ir.Type.parse(f"!llvm.struct<({', '.join([str(register)] * count)})>")
    value = _create(llvm.InlineAsmOp, type_, [address, policy], text, constraints)
    if not single:
        return [_create(llvm.ExtractValueOp, register, value, ir.DenseI64ArrayAttr.get([i])) for i in range(count)]
    if width != load.register_bits:
        narrow = ir.IntegerType.get_signless(load.register_bits)
        value = _create(llvm.TruncOp, narrow, value, ir.Attribute.parse("#llvm.overflow<none>"))
    return [value]


def _concatenate(registers: list[ir.Value], register_bits: int) -> ir.Value:
    """One value that holds the registers in order."""
    if len(registers) == 1:
        return registers[0]
    vector = ir.VectorType.get([len(registers)], ir.IntegerType.get_signless(register_bits))
    data = _create(llvm.PoisonOp, vector)
    for number, value in enumerate(registers):
        i32 = ir.IntegerType.get_signless(32)
        position = _create(llvm.ConstantOp, i32, ir.IntegerAttr.get(i32, number))
        data = _create(llvm.InsertElementOp, data, value, position, results=[vector])
    return data
