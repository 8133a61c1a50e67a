"""Random copies: the loads that the pass makes are the compiler's own non-invariant loads with `.nc` added.

A copy is drawn as IR and lowered twice, by the pass and, without `invariant = true`, by the compiler. Both are executed
on addresses (see `support/interpreter.py`): same loads, same widths, same addresses, under the same predicates, and
every byte of the fragment comes from the same byte of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutlass._mlir import ir
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from cute_cache_policy.pass_manager import Pass, run
from cute_cache_policy.passes import ConvertInvariantCopyToNVVM
from cute_cache_policy.ptx import Target
from support.cells import TARGETS
from support.interpreter import Access, Trace, trace

TYPES = {"i8": 8, "f8E4M3FN": 8, "f4E2M1FN": 4, "i4": 4, "bf16": 16, "f16": 16, "i32": 32, "f32": 32}
TYPES |= {"i64": 64, "f64": 64, "i128": 128}


@dataclass(frozen=True)
class Copy:
    """A copy to draw. Strides are in vectors; None is only known at run time."""

    type: str
    bits: int
    shape: tuple[int, ...]
    stride: tuple[int | None, ...]
    nested: bool
    predicated: bool
    tiled: bool
    call: bool
    target: str

    @property
    def elements(self) -> int:
        """Elements of a vector."""
        return self.bits // TYPES[self.type]

    def text(self, invariant: bool) -> str:
        """The copy, as the body of a function of its operands."""
        v = self.elements
        atom = f"!cute_nvgpu.atom.g2r<{self.type} copy_bits = {self.bits}"
        atom += " invariant = true>" if invariant else ">"
        if self.tiled:
            layouts = f'layout_copy_tv = <"((8,4),{v}):(({4 * v},1),4)">, tiler_mn = <"[4:1;{8 * v}:1]">'
            atom = f"!cute.tiled_copy<{atom}, {layouts}>"
        # a vector with a mode of its own for the predicate
        far = [f"?{{div={v}}}" if d is None else str(d * v) for d in self.stride]
        near, size = [], 1
        for extent in self.shape:
            near.append(str(size))
            size *= extent
        compact = [str(int(d) * v) for d in near]
        source = self._memref("gmem", f"({v},1)", "(1,0)" if v > 1 else "(0,0)", far)
        target = self._memref("rmem", f"({v},1)", "(1,0)" if v > 1 else "(0,0)", compact)
        types, arguments = [atom, source, target], ["%set", "%source", "%target"]
        if self.predicated:
            types.append(self._memref("rmem", "1", "0", near, "i8"))
            arguments.append("%guard")
        op = "cute.copy_atom_call" if self.call else "cute.copy"
        result = " -> ()" if self.call else ""
        guard = f", %guard: {types[3]}" if self.predicated else ""
        return f"""func.func @f(%atom: {atom}, %policy: i64, %source: {source}, %target: {target}{guard}) {{
          %set = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : ({atom}, i64)
          {op}({", ".join(arguments)}) : ({", ".join(types)}){result}
          return
        }}"""

    def _memref(self, space: str, vector: str, step: str, strides: list[str], type_: str = "") -> str:
        shape = [str(extent) for extent in self.shape]
        if self.call:
            layout = f"({vector}):({step})"
        elif self.nested and shape:
            inner = f"({vector},{shape[0]})", f"({step},{strides[0]})"
            rest = ",".join(shape[1:]) or "1", ",".join(strides[1:]) or "0"
            layout = f"({inner[0]},({rest[0]})):({inner[1]},({rest[1]}))"
        else:
            layout = f"({vector},({','.join(shape) or 1})):({step},({','.join(strides) or 0}))"
        element = type_ or self.type
        return f'!cute.memref<{element}, {space}, align<32>, "{layout}">'


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    """Copies that the compiler accepts."""
    type_ = draw(st.sampled_from(sorted(TYPES)))
    bits = draw(st.sampled_from([b for b in (8, 16, 32, 64, 128, 256) if b >= TYPES[type_]]))
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    stride = tuple(draw(st.one_of(st.none(), st.integers(0, 40))) for _ in shape)
    flags = (draw(st.booleans()) for _ in range(3))
    call = draw(st.booleans()) and draw(st.booleans())
    nested, predicated, tiled = flags
    return Copy(
        type_, bits, () if call else shape, () if call else stride, nested, predicated, tiled and not call, call,
        draw(st.sampled_from(TARGETS)),
    )  # fmt: skip


def lowered(copy: Copy, invariant: bool, passes: list[Pass | str]) -> Trace:
    """What the lowered copy does; the module is verified before and after."""
    with ir.Context():
        module = ir.Module.parse(copy.text(invariant))
        module.operation.verify()
        run(module, passes)
        note(str(module))
        return trace(module.body.operations[0].operation)


def split(accesses: list[Access], target: str) -> list[Access]:
    """Loads of 256 bits as two of 128 bits, where the target has none."""
    if Target.parse(target).sm >= 100:
        return accesses
    halves = []
    for access in accesses:
        offsets = (0, 128) if access.bits == 256 else (0,)
        halves += [replace(access, offset=access.offset + o, bits=access.bits // len(offsets)) for o in offsets]
    return halves


@settings(max_examples=1000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@example(Copy("f32", 256, (2, 3), (3, None), False, True, False, False, "sm_90a"))
@example(Copy("i8", 8, (4,), (1,), True, False, True, False, "sm_100a"))
@given(copies())
def test_only_non_coherence_is_added(copy: Copy) -> None:
    ours = lowered(copy, True, [ConvertInvariantCopyToNVVM(gpu_arch=copy.target)])
    native = lowered(copy, False, ["func.func(cute-expand-ops)"])
    assert set(native.mnemonics) == {"nvvm.load.ext"}
    assert all(mnemonic.startswith("ld.global.nc.L2::cache_hint.") for mnemonic in ours.mnemonics)
    assert ours.loads == split(native.loads, copy.target)
    assert ours.stores == native.stores
