"""The coverage matrix: every element type, width, layout and predicate, for every target.

One target gets every cell; each other one every type and width, with the layouts by turns (`--full`: every cell).
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from cute_cache_policy.ptx import Target, load_shape
from support.batches import compile_cells, global_loads
from support.cells import BITS, LAYOUTS, TARGETS, TYPES, Cell, variants

COMPLETE = "sm_90a"

#: Kernels in one module: few, because the time to compile one grows faster than its size.
BATCH = 16

#: The DSL has no G2R atom for them: a width is a power of two.
REFUSED = [name for name, type_ in TYPES.items() if type_.width in (6, 24)]


def selection(arch: str, full: bool) -> dict[str, list[Cell]]:
    """The cells to compile for a target, by type."""
    chosen: dict[str, list[Cell]] = {}
    turn = TARGETS.index(arch)
    for type_name in TYPES:
        for bits in BITS:
            cells = variants(type_name, bits)
            if cells and not (full or arch == COMPLETE):
                cells = [cells[turn % len(cells)]]
                turn += 1
            chosen.setdefault(type_name, []).extend(cells)
    return {type_name: cells for type_name, cells in chosen.items() if cells}


@pytest.mark.parametrize("arch", TARGETS)
def test_every_load_is_hinted(arch: str, full: bool, table: list[str], tmp_path: Path) -> None:
    chosen, began, loads = selection(arch, full), time.perf_counter(), 0
    for cells in chosen.values():
        batches = (cells[i : i + BATCH] for i in range(0, len(cells), BATCH))
        compiled_cells = chain.from_iterable(compile_cells(batch, arch, tmp_path) for batch in batches)
        for cell, compiled in zip(cells, compiled_cells):
            form = replace(load_shape(cell.bits, cell.element_bits), cache_hint=True)
            pieces = [piece.mnemonic for piece in form.pieces(Target.parse(arch))]
            # a loop that the user unrolls in part stays a loop
            count = 2 if cell.layout.call == "unroll" else cell.vectors
            assert global_loads(compiled.ptx) == pieces * count, cell
            loads += len(pieces) * count
    total = sum(map(len, chosen.values()))
    seconds = time.perf_counter() - began
    table.append(f"{arch:8} {len(chosen):3} types {total:5} kernels {loads:6} loads {seconds:6.1f} s")


def test_selection_reaches_every_cell() -> None:
    # the types that the DSL refuses are all that is missing
    chosen = selection(COMPLETE, full=False)
    assert sorted([*chosen, *REFUSED]) == sorted(TYPES)
    assert {cell.layout_name for cells in chosen.values() for cell in cells} == set(LAYOUTS)


@pytest.mark.parametrize("type_name", REFUSED)
def test_types_without_an_atom_are_refused_by_the_compiler(type_name: str) -> None:
    with pytest.raises(TypeError, match="copy_bits"):
        Cell(type_name, 128).compile("--gpu-arch sm_90a")
