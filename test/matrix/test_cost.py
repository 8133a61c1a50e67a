"""What non-coherence costs in machine code: no instruction and no register, next to the compiler's own hinted loads.

The other side is the same kernel with `invariant=False` and the same policy. Where ours is larger, one of `EXCUSES` has
to hold, and the table after the tests counts them; any other growth fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support.batches import Compiled, compile_cells, global_loads
from support.cells import BITS, Cell, variants

#: One type for each way that data is kept in registers.
TYPES = ("Float4E2M1FN", "Uint8", "BFloat16", "Float32", "Int64", "Int128")


def instructions(ptx: str) -> list[str]:
    """PTX without what must differ, or does not reach ptxas: `.nc`, comments, register numbers, moves of zeros."""
    lines = (re.sub(r"//.*", "", line).strip() for line in ptx.splitlines())
    return sorted(re.sub(r"%[a-z]+\d+", "%", line.replace(".nc", "")) for line in lines if line)


def same_ptx(cell: Cell, ours: Compiled, native: Compiled) -> bool:
    """ptxas was given the same program and schedules non-coherent loads otherwise."""
    code, other = (Counter(instructions(c.ptx)) for c in (ours, native))
    return all(re.match(r"mov|\.reg|\.param", line) for line in (code - other) + (other - code))


def merged(cell: Cell, ours: Compiled, native: Compiled) -> bool:
    """LLVM made fewer loads of neighbouring ones that are under no predicate; it does not look into asm."""
    return len(global_loads(native.ptx)) < len(global_loads(ours.ptx)) and not cell.tail


def branch_in_loop(cell: Cell, ours: Compiled, native: Compiled) -> bool:
    """A load under a branch in a loop: LLVM computes the address in front of the branch only if the block is short."""
    assert ours.kernel and native.kernel
    more = len(ours.kernel.instructions) - len(native.kernel.instructions)
    return cell.layout.call == "unroll" and cell.tail and more <= 6


def halves(cell: Cell, ours: Compiled, native: Compiled) -> bool:
    """The compiler loads 64 and 256 bits to 64-bit registers; ours have 32, as in its own non-coherent loads."""
    return cell.bits in (64, 256)


def traded(cell: Cell, ours: Compiled, native: Compiled) -> bool:
    """ptxas took up to three instructions more and fewer registers for them."""
    assert ours.kernel and native.kernel
    more = len(ours.kernel.instructions) - len(native.kernel.instructions)
    return more <= 3 and ours.kernel.registers < native.kernel.registers


EXCUSES: tuple[Callable[[Cell, Compiled, Compiled], bool], ...] = (
    same_ptx,
    merged,
    branch_in_loop,
    halves,
    traded,
)


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_no_instruction_and_no_register_more(arch: str, type_name: str, table: list[str], tmp_path: Path) -> None:
    count, excused, worse = 0, Counter(), []
    for bits in BITS:
        cells = variants(type_name, bits)
        if not cells:
            continue
        pairs = (compile_cells(cells, arch, tmp_path, invariant=invariant, sass=True) for invariant in (True, False))
        for cell, ours, native in zip(cells, *pairs):
            assert ours.kernel and native.kernel
            code = len(ours.kernel.instructions), len(native.kernel.instructions)
            registers = ours.kernel.registers, native.kernel.registers
            count += 1
            if code[0] > code[1] or registers[0] > registers[1]:
                excuse = next((e.__name__ for e in EXCUSES if e(cell, ours, native)), None)
                excused[excuse] += 1
                if excuse is None:
                    sizes = f"{code[0]} instructions for {code[1]}, {registers[0]} registers for {registers[1]}"
                    worse.append(f"{cell}: {sizes}")
    table.append(f"{arch:8} {type_name:13} {count:3} cells no larger than coherent ones, but for {dict(excused)}")
    assert not worse, "\n".join(worse)
