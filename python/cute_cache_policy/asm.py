"""Emitting `ptx.GlobalLoad` as `llvm.inline_asm`.

The asm has no side effects: LLVM and ptxas may then move independent loads past stores, which is what a non-coherent
load is for.

The address is a memory operand (`*m`): LLVM folds constant offsets into it, so that ptxas sees `[%rd1+32]` as it does
for the compiler's own loads. With an address in a register, each load of a copy would bring an addition of its own.
"""

from __future__ import annotations

import math
import re

from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm

from .atoms import AtomType
from .bindings import integer_constant, operands, results
from .ptx import AsyncCopy, CacheOperator, GlobalLoad, L1Priority, PrefetchSize, Target, load_shape

__all__ = ["async_form", "bit_width", "emit_async_copy", "emit_load", "load_form"]

#: Inline asm constraint of a register, by its width in bits. There is none for 8 bits: `ld.b8` takes a 16-bit register.
_CONSTRAINT = {16: "h", 32: "r", 64: "l"}

#: The predicate of `llvm.icmp sgt`.
_SIGNED_GREATER = 4


def bit_width(type_: ir.Type) -> int:
    """The width of a value of `type_`, in bits."""
    if isinstance(type_, ir.VectorType):
        return math.prod(type_.shape) * bit_width(type_.element_type)
    assert isinstance(type_, (ir.IntegerType, ir.FloatType)), type_
    return type_.width


def load_form(load: ir.Operation, atom: AtomType | None, cache_hint: bool) -> GlobalLoad:
    """The non-coherent load of a `llvm.load` or `nvvm.load.ext`, which stands in a copy through `atom` if not None.

    It has the width and the qualifiers of that op, and what no op says: the static L2 priority of the atom, and whether
    a cache policy comes along.
    """
    type_ = results(load)[0].type
    if atom is not None:
        # not the elements of the op: the compiler loads 256 bits of any element as vector<4xi64>
        element_bits = atom.element_bits
    else:
        element_bits = bit_width(type_.element_type if isinstance(type_, ir.VectorType) else type_)
    shape = load_shape(bit_width(type_), element_bits)
    cop, l1, prefetch = (_keyword(load, name) for name in ("cacheModifier", "evict", "prefetch"))
    return GlobalLoad(
        shape.register_bits,
        shape.vector,
        cop=CacheOperator(f".{cop}") if cop else None,
        l1=L1Priority[l1.upper().replace("EVICT_NO_", "NO_")] if l1 else None,
        l2=atom.static_l2_priority if atom else None,
        prefetch=PrefetchSize(f".L2::{prefetch[5:].upper()}") if prefetch else None,
        cache_hint=cache_hint,
    )


def _keyword(op: ir.Operation, name: str) -> str | None:
    """`evict_first` for an attribute like `#nvvm.evict_kind<evict_first>`, None if `op` does not have the attribute."""
    match = re.search(r"<(\w+)>", str(op.attributes[name])) if name in op.attributes else None
    return match[1] if match else None


def emit_load(load: ir.Operation, form: GlobalLoad, policy: ir.Value | None, target: Target) -> None:
    """Replace a load of the compiler by `form`, a load of the same memory.

    Where `target` has no 256-bit loads, two of 128 bits take its place: inline asm is not legalized later.
    """
    (result,) = results(load)
    address = operands(load)[0]
    with ir.InsertionPoint(load), load.location:
        _assume_well_defined(address)
        registers: list[ir.Value] = []
        for number, piece in enumerate(form.pieces(target)):
            registers += _emit(piece, address, number * piece.bits // 8, policy)
        data = _concatenate(registers, form.register_bits)
        if data.type != result.type:
            data = _create("llvm.bitcast", result.type, [data])
    result.replace_all_uses_with(data)
    load.erase()


def async_form(copy: ir.Operation) -> AsyncCopy:
    """The cp.async with a cache policy that a `nvvm.cp.async.shared.global` is to become."""
    # every other mode becomes `.ca` in the compiler, too
    cop = CacheOperator.CG if str(copy.attributes["modifier"]).endswith("cg>") else CacheOperator.CA
    return AsyncCopy(ir.IntegerAttr(copy.attributes["size"]).value, cop, cache_hint=True)


def emit_async_copy(copy: ir.Operation, form: AsyncCopy, policy: ir.Value) -> None:
    """Replace a `nvvm.cp.async.shared.global` by `form`, a copy of the same memory.

    It has a side effect, unlike a load. Shared memory has addresses of 32 bits, as in the compiler's own.
    """
    target, source, *size = operands(copy)
    if size and integer_constant(size[0]) is not None:
        # all of the bytes
        size = []
    with ir.InsertionPoint(copy), copy.location:
        inputs = [_create("llvm.ptrtoint", ir.IntegerType.get_signless(32), [target]), source, *size, policy]
        names = [f"${i}" for i in range(len(inputs))]
        text = form.text(names[0], names[1], names[2] if size else None, names[-1])
        constraints = ",".join(["r", "l", *["r"] * len(size), "l", "~{memory}"])
        llvm.InlineAsmOp(None, inputs, text, constraints, has_side_effects=True)
    copy.erase()


def _create(name: str, type_: ir.Type, inputs: list[ir.Value], **attributes: ir.Attribute) -> ir.Value:
    # twice as fast as the classes of the dialect, which counts where a kernel has one copy
    return results(ir.Operation.create(name, [type_], inputs, attributes))[0]


def _assume_well_defined(address: ir.Value) -> None:
    """Tell LLVM that `address` is not poison, which it knows of the address of a load but not of an operand of asm.

    Only then does it derive the addresses of neighbouring loads from one base and constants (`reuniteExts` in
    SeparateConstOffsetFromGEP), so that ptxas sees, and schedules, what it sees of the compiler's own loads. Assumed is
    that the address is not negative, as no address of a GPU is; the assumption costs no instruction.
    """
    i1, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
    number = _create("llvm.ptrtoint", i64, [address])
    minus_one = _create("llvm.mlir.constant", i64, [], value=ir.IntegerAttr.get(i64, -1))
    predicate = ir.IntegerAttr.get(i64, _SIGNED_GREATER)
    condition = _create("llvm.icmp", i1, [number, minus_one], predicate=predicate)
    no_bundles = {"op_bundle_sizes": ir.DenseI32ArrayAttr.get([])}
    ir.Operation.create("llvm.intr.assume", [], [condition], no_bundles)


def _emit(load: GlobalLoad, address: ir.Value, offset: int, policy: ir.Value | None) -> list[ir.Value]:
    """The destination registers of one load at `address + offset` bytes."""
    width = max(load.register_bits, 16)
    register = ir.IntegerType.get_signless(width)
    count = load.vector
    names = [f"${i}" for i in range(count)]
    text = load.text(names, f"${count}", None if policy is None else f"${count + 1}")
    inputs, kinds = [_advance(address, offset)], ["*m"]
    attributes = [ir.DictAttr.get({"elementtype": ir.TypeAttr.get(ir.IntegerType.get_signless(load.bits))})]
    if policy is not None:
        inputs, kinds, attributes = [*inputs, policy], [*kinds, "l"], [*attributes, ir.DictAttr.get({})]
    constraints = ",".join([f"={_CONSTRAINT[width]}"] * count + kinds)
    single = count == 1
    value = _create(
        "llvm.inline_asm",
        register if single else llvm.StructType.get_literal([register] * count),
        inputs,
        asm_string=ir.StringAttr.get(text),
        constraints=ir.StringAttr.get(constraints),
        operand_attrs=ir.ArrayAttr.get(attributes),
    )
    if not single:
        positions = (ir.DenseI64ArrayAttr.get([i]) for i in range(count))
        return [_create("llvm.extractvalue", register, [value], position=position) for position in positions]
    if width != load.register_bits:
        narrow = ir.IntegerType.get_signless(load.register_bits)
        value = _create("llvm.trunc", narrow, [value])
    return [value]


def _advance(address: ir.Value, offset: int) -> ir.Value:
    """`address + offset` bytes."""
    if not offset:
        return address
    indices, byte = ir.DenseI32ArrayAttr.get([offset]), ir.TypeAttr.get(ir.IntegerType.get_signless(8))
    return _create("llvm.getelementptr", address.type, [address], rawConstantIndices=indices, elem_type=byte)


def _concatenate(registers: list[ir.Value], register_bits: int) -> ir.Value:
    """One value that holds the registers in order."""
    if len(registers) == 1:
        return registers[0]
    vector = ir.VectorType.get([len(registers)], ir.IntegerType.get_signless(register_bits))
    return _create("vector.from_elements", vector, registers)
