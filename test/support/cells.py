"""Cells of the coverage matrix: one kernel that makes one copy, for any element type, width, layout and predicate.

A cell copies vectors from global memory to registers with the policy it is given, and stores the registers, compactly,
to another buffer. It takes plain addresses, so the same kernel is compiled with none (`Cell.compile`) and run on
bytes of any kind (`Cell.expected` says which).

    cell = Cell("BFloat16", 128, "strided", tail=True)
    compiled = cell.compile("--honor-cache-policy --gpu-arch sm_90a")
    compiled(*cell.arguments(source_address, target_address, policy, limit))
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import cutlass
from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int32, Int64, Uint8, Uint16, Uint32, Uint64, cute
from cutlass.base_dsl.typing import Numeric
from cutlass.cute.runtime import make_ptr

__all__ = ["BITS", "LAYOUTS", "PITCH", "SOURCE_VECTORS", "TARGETS", "THREADS", "TYPES"]
__all__ += ["Batch", "Cell", "Layout", "variants"]

THREADS = 32

#: The targets whose embedded ptxas knows `.L2::cache_hint`.
TARGETS = tuple(f"sm_{n}" for n in ("80", "86", "89", "90", "90a", "100a", "100f", "103a", "110a", "120a", "121a"))

#: Widths of a copy, in bits.
BITS = (8, 16, 32, 64, 128, 256)

#: What the kernels get for a stride that is dynamic, in vectors.
PITCH = 5

#: An upper bound of the vectors that a cell reads.
SOURCE_VECTORS = THREADS * 32


def _numeric_types() -> dict[str, type[Numeric]]:
    """Every numeric type that `cutlass` exports and that has a size of its own."""
    found = {name: value for name, value in vars(cutlass).items() if isinstance(value, type)}
    abstract = ("Numeric", "Integer", "Float")
    return {
        name: value
        for name, value in sorted(found.items())
        if issubclass(value, Numeric) and value.__name__ == name and name not in abstract
    }


#: The element types, by name.
TYPES = _numeric_types()


@dataclass(frozen=True)
class Layout:
    """Which vectors a thread copies, and how the copy is written. Strides are in vectors; None stands for `PITCH`.

    Attributes:
        shape, stride: the rest modes of one thread's tensor.
        thread_shape, thread_stride: where the threads start.
        split: whether the vector mode is written as two modes.
        nested: whether the first rest mode is part of the vector mode, as in `((atom, rest), rest...)`.
        call: `copy`, `unroll` (`unroll_factor`), `atom` (`copy_atom_call` for each vector) or `tiled`.
        dynamic_shape: whether it is a tile of a tensor whose extents are only known at run time.
    """

    shape: tuple[int, ...]
    stride: tuple[int | None, ...]
    thread_shape: tuple[int, ...] = (THREADS,)
    thread_stride: tuple[int, ...] = (32,)
    split: bool = False
    nested: bool = False
    call: str = "copy"
    dynamic_shape: bool = False


LAYOUTS: dict[str, Layout] = {
    "single": Layout((1,), (1,)),
    "contiguous": Layout((4,), (1,)),
    "strided": Layout((2, 2), (3, 8)),
    "dynamic_stride": Layout((2, 2), (1, None)),
    "dynamic_shape": Layout((2, 3), (1, None), dynamic_shape=True),
    "split_vector": Layout((3,), (2,), split=True),
    "nested_vector": Layout((2, 2), (4, 1), nested=True),
    "unrolled": Layout((4, 2), (2, 9), call="unroll"),
    "atom_call": Layout((3,), (4,), call="atom"),
    "tiled": Layout((2, 2), (64, 8), (8, 4), (1, 16), call="tiled"),
}


def _offsets(shape: tuple[int, ...], stride: tuple[int | None, ...]) -> list[int]:
    """What a layout maps 0, 1, 2... to: the first mode runs fastest."""
    modes = [[i * (PITCH if d is None else d) for i in range(n)] for n, d in zip(shape, stride)]
    return [sum(point) for point in itertools.product(*reversed(modes))]


@dataclass(frozen=True, repr=False)
class Cell:
    """One cell of the matrix.

    Attributes:
        type_name: the element type, a key of `TYPES`.
        bits: the width of the copy.
        layout_name: a key of `LAYOUTS`.
        tail: whether vectors from a run-time limit on are predicated off.
        invariant: whether the atom is `invariant=True`.
    """

    type_name: str
    bits: int
    layout_name: str = "contiguous"
    tail: bool = False
    invariant: bool = True

    def __repr__(self) -> str:
        return f"{self.type_name}-{self.bits}-{self.layout_name}{'-tail' if self.tail else ''}"

    @property
    def dtype(self) -> type[Numeric]:
        """The element type."""
        return TYPES[self.type_name]

    @property
    def layout(self) -> Layout:
        """The layout."""
        return LAYOUTS[self.layout_name]

    @property
    def element_bits(self) -> int:
        """Bits of an element in memory: a Boolean takes a byte."""
        return 8 if self.dtype is Boolean else self.dtype.width

    @property
    def container(self) -> type[Numeric]:
        """A type whose zero is known to fill whole elements."""
        if self.dtype in (Float16, BFloat16, Float32, Float64):
            return self.dtype
        return {16: Uint16, 32: Uint32, 64: Uint64, 128: Uint64}.get(self.element_bits, Uint8)

    @property
    def elements(self) -> int:
        """Elements of one vector."""
        return self.bits // self.element_bits

    @property
    def exists(self) -> bool:
        """Whether the DSL has such a copy: it refuses, or miscounts, the others without a cache policy too."""
        layout = self.layout
        return not (
            self.bits % self.element_bits  # 6-bit elements: a width is a power of two
            or (layout.split and (self.elements % 2 or self.tail))  # the predicate would guard half vectors
            or (layout.call == "tiled" and self.dtype is Boolean)  # a tiled copy counts a Boolean as one bit
        )

    @property
    def vectors(self) -> int:
        """Vectors that one thread copies."""
        return len(_offsets(self.layout.shape, self.layout.stride))

    @property
    def reach(self) -> int:
        """Vectors from the first to the last one that it reads, where no predicate turns it off."""
        layout = self.layout
        last = (
            max(_offsets(*modes))
            for modes in ((layout.thread_shape, layout.thread_stride), (layout.shape, layout.stride))
        )
        return 1 + sum(last)

    def expected(self, source: bytes, limit: int = SOURCE_VECTORS) -> bytes:
        """What the target buffer holds afterwards, for a source of `SOURCE_VECTORS` vectors; zeros for no vector."""
        size = self.bits // 8
        starts = _offsets(self.layout.thread_shape, self.layout.thread_stride)
        offsets = _offsets(self.layout.shape, self.layout.stride)
        taken = (start + offset for start in starts for offset in offsets)
        return b"".join(
            source[at * size : (at + 1) * size] if at < limit or not self.tail else bytes(size) for at in taken
        )

    def arguments(self, source: int = 0, target: int = 0, policy: int = 0, limit: int = SOURCE_VECTORS) -> tuple:
        """The arguments of the compiled cell, for the addresses of two buffers, 32 bytes aligned."""
        gmem = cute.AddressSpace.gmem
        memory = Uint8 if self.dtype is Boolean else self.dtype
        pointers = (make_ptr(memory, address, gmem, assumed_align=32) for address in (source, target))
        return (*pointers, Int64(policy), Int32(limit), Int32(PITCH), Int32(2))

    def compile(self, options: str = "") -> Any:
        """The compiled cell, to call with `arguments`."""
        return Batch((self,)).compile(options)


def variants(type_name: str, bits: int) -> list[Cell]:
    """Every cell of a type and a width."""
    cells = (Cell(type_name, bits, layout, tail) for layout in LAYOUTS for tail in (False, True))
    return [cell for cell in cells if cell.exists]


@dataclass(frozen=True, repr=False)
class Batch:
    """Cells of one element type, a kernel each, compiled as one module."""

    cells: tuple[Cell, ...]

    def __repr__(self) -> str:
        return f"{self.cells[0]!r}-{len(self.cells)}"

    def compile(self, options: str = "") -> Any:
        """The compiled cells, which run one after the other."""
        return cute.compile(launch, self, *self.cells[0].arguments(), options=options)


def _scale(elements: int, stride: int | Int32) -> int | Int32:
    """A stride in elements, for one in vectors."""
    return elements * stride if isinstance(stride, int) else cute.assume(elements * stride, divby=elements)


@cute.jit
def launch(
    batch: cutlass.Constexpr,
    source: cute.Pointer,
    target: cute.Pointer,
    policy: Int64,
    limit: Int32,
    pitch: Int32,
    extent: Int32,
):
    """Run the kernels of a batch one after the other."""
    for i in cutlass.range_constexpr(len(batch.cells)):
        kernel(batch.cells[i], source, target, policy, limit, pitch, extent).launch(
            grid=[1, 1, 1], block=[THREADS, 1, 1]
        )


@cute.kernel
def kernel(
    cell: cutlass.Constexpr,
    source: cute.Pointer,
    target: cute.Pointer,
    policy: Int64,
    limit: Int32,
    pitch: Int32,
    extent: Int32,
):
    """Copy the vectors of one thread to registers, and the registers to the thread's part of the target."""
    tid, _, _ = cute.arch.thread_idx()
    layout, v = cell.layout, cell.elements
    op = cute.nvgpu.CopyG2ROp()
    atom = cute.make_copy_atom(op, cell.dtype, num_bits_per_copy=cell.bits, invariant=cell.invariant)
    fragment = cute.make_rmem_tensor((cell.vectors * v,), cell.dtype)
    if cutlass.const_expr(cell.tail):
        cute.recast_tensor(fragment, cell.container).fill(0)

    # all as (vector, rest...) or ((vector, rest), rest...), predicates with 1 for the vector
    stride = tuple(pitch if d is None else d for d in layout.stride)
    shape = layout.shape
    vector = cute.make_layout((v // 2, 2) if layout.split else (v, 1) if cell.tail else v)
    guards = cute.make_rmem_tensor((1, *layout.shape), Boolean)
    if cutlass.const_expr(cell.tail):
        starts = cute.make_layout(layout.thread_shape, stride=layout.thread_stride)
        rest = cute.make_layout(layout.shape, stride=stride)
        for i in cutlass.range_constexpr(cell.vectors):
            guards[i] = starts(tid) + rest(i) < limit
    start = cute.make_layout(layout.thread_shape, stride=tuple(v * d for d in layout.thread_stride))(tid)
    far = cute.make_layout((vector.shape, *shape), stride=(vector.stride, *(_scale(v, d) for d in stride)))
    near = cute.make_layout((vector.shape, *shape))
    if cutlass.const_expr(layout.nested):
        far, near = cute.group_modes(far, 0, 2), cute.group_modes(near, 0, 2)
    here, there = cute.make_tensor(source + start, far), cute.make_tensor(fragment.iterator, near)
    if cutlass.const_expr(layout.dynamic_shape):
        whole = cute.make_layout((vector.shape, *(n * extent for n in shape)), stride=far.stride)
        here = cute.local_tile(cute.make_tensor(source + start, whole), far.shape, (0,) * (1 + len(shape)))
    if cutlass.const_expr(layout.call == "tiled"):
        atom = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, v)))
        tile = cute.make_tensor(source, cute.make_layout((8, 16 * v), stride=(16 * v, 1)))
        here = atom.get_slice(tid).partition_S(tile)
        there = cute.make_tensor(fragment.iterator, cute.make_layout(here.shape))

    if cutlass.const_expr(layout.call == "atom"):
        for i in cutlass.range_constexpr(cell.vectors):
            if cutlass.const_expr(cell.tail):
                guard = cute.make_tensor(guards.iterator + i, cute.make_layout((1,)))
                cute.copy_atom_call(atom, here[None, i], there[None, i], pred=guard, cache_policy=policy)
            else:
                cute.copy_atom_call(atom, here[None, i], there[None, i], cache_policy=policy)
    else:
        guard = cute.group_modes(guards, 0, 2) if layout.nested else guards
        extra = {"pred": guard} if cell.tail else {}
        if cutlass.const_expr(layout.call == "unroll"):
            extra["unroll_factor"] = 2
        cute.copy(atom, here, there, cache_policy=policy, **extra)

    out = cute.make_layout((THREADS, cute.size(fragment)), stride=(cute.size(fragment), 1))
    cute.autovec_copy(fragment, cute.make_tensor(target, out)[tid, None])
