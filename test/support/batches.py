"""Compiling batches of cells, and finding each cell again in what comes out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import cute_cache_policy  # noqa: F401 - registers the options

from .cells import Batch, Cell
from .cubin import Kernel, kernels

__all__ = ["Compiled", "compile_cells", "global_loads"]


@dataclass(frozen=True)
class Compiled:
    """One compiled cell: its PTX, and its machine code if that was asked for."""

    ptx: str
    kernel: Kernel | None


def compile_cells(
    cells: list[Cell], arch: str, dump: Path, *, invariant: bool = True, sass: bool = False
) -> list[Compiled]:
    """Compile cells of one element type as one module, with the option, or the same copies without `invariant`."""
    batch = Batch(tuple(replace(cell, invariant=invariant) for cell in cells))
    options = f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {dump}"
    batch.compile(options + " --honor-cache-policy" * invariant)
    # read from the folder, because the DSL looks for the files of sm_110a under another name than it gives them
    ptx, cubin = (max(dump.glob(f"*.{kind}"), key=lambda path: path.stat().st_mtime_ns) for kind in ("ptx", "cubin"))
    texts = dict(re.findall(r"\.entry (\w+)\((.*?)\n}", ptx.read_text(), re.DOTALL))
    code = kernels(cubin.read_bytes()) if sass else {}
    found = []
    for cell in batch.cells:
        prefix = f"kernel_cutlass_kernel_{repr(cell).replace('-', '')}_ptr"
        (name,) = (name for name in texts if name.startswith(prefix))
        found.append(Compiled(texts[name], code.get(name)))
    return found


def global_loads(ptx: str) -> list[str]:
    """The mnemonics of the loads of global memory in a PTX text."""
    return re.findall(r"ld\.global\S*", ptx)
