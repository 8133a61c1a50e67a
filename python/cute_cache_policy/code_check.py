"""Whether the hints that the IR promises are in the code: the part of `verify-cache-policy` behind the compiler.

Compilers have lost a hint between IR and PTX, or the register behind it between PTX and SASS (triton-lang/triton pull
request 11660, IST-DASLab/marlin issue 44). The traced module is therefore compiled once more, to the side, and counted:

- IR: hinted loads, stores and asynchronous copies, those in loops that the compiler unrolls as often as these run;
- PTX: those with `.L2::cache_hint`;
- SASS: those through a descriptor other than the default one. A descriptor that nothing was written to is an error.

Code that cannot run disappears, equal accesses are merged, and loops of the user may be unrolled, so the counts need
not be equal. None left of a kind where others of the kind are is an error, fewer than promised a warning.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter

from cutlass._mlir import ir

from .atoms import COPY_OPS, PolicyFlow, copy_atom
from .bindings import enclosing, walk
from .codegen import disassemble, emit, find_nvdisasm
from .dataflow import CallGraph
from .diagnostics import CachePolicyError, CachePolicyWarning
from .expansion import ACCESSES, Expander, trips
from .ptx import Target
from .reporting import instruction
from .sass import global_accesses

__all__ = ["check", "hints_in_ptx", "hints_in_sass", "promised_hints"]

_KINDS = {"ld": "load", "st": "store", "cp": "asynchronous copy"}

#: The kind of an access, by the start of its SASS mnemonic.
_SASS_KINDS = {"LDGSTS": "cp", "LDG": "ld", "STG": "st"}


def promised_hints(module: ir.Operation) -> Counter[str]:
    """How many hinted `ld`, `st` and `cp` (cp.async) of global memory the compiler is to make of a module, at least."""
    flow, expander = PolicyFlow(CallGraph(module)), Expander()
    hints: Counter[str] = Counter()
    for op in walk(module):
        accesses = [(op, 1)] if op.name in ACCESSES else []
        if op.name in COPY_OPS and (atom := copy_atom(op)) and atom.kind in ("g2r", "r2g"):
            accesses = expander.expand(op)[0].accesses() if flow.trace(op).carries_policy else []
        for access, times in accesses:
            hinted, _ = hints_in_ptx(instruction(access))
            unrolled = (loop for loop in enclosing(op) if hinted and "loop_annotation" in loop.attributes)
            times *= math.prod(map(trips, unrolled))
            hints.update({kind: count * times for kind, count in hinted.items()})
    return hints


def hints_in_ptx(ptx: str) -> tuple[Counter[str], Counter[str]]:
    """How many accesses of global memory of each kind PTX has: with a hint, and without."""
    hinted: Counter[str] = Counter()
    bare: Counter[str] = Counter()
    for kind, qualifiers in re.findall(r"^\s*(?:@!?%\w+ )?(ld|st|cp)\.(\S+)", ptx, re.M):
        if re.match(r"async\.c[ag]\b" if kind == "cp" else r"([\w.]+\.)?global\b", qualifiers):
            (hinted if "L2::cache_hint" in qualifiers else bare)[kind] += 1
    return hinted, bare


def hints_in_sass(sass: str, target: Target) -> tuple[Counter[str], Counter[str]]:
    """How many accesses of each kind SASS makes through a descriptor that holds a policy, and through the default one.

    Raises CachePolicyError for one through a descriptor that nothing was written to.
    """
    hinted: Counter[str] = Counter()
    bare: Counter[str] = Counter()
    for access in global_accesses(sass, target):
        if "nothing" in access.policy:
            raise CachePolicyError(f"'{access.mnemonic}' expects a policy in its descriptor, but got nothing")
        kind = next(kind for name, kind in _SASS_KINDS.items() if access.mnemonic.startswith(name))
        (bare if access.policy == "default" else hinted)[kind] += 1
    return hinted, bare


def check(module: ir.Module, gpu_arch: str) -> None:
    """Compile a copy of a traced module and look for the hints in it.

    Raises CachePolicyError if those of one kind are gone; warns if some are, or if there is no nvdisasm to look with.
    """
    promised = promised_hints(module.operation)
    if not promised:
        return
    ptx, cubin = (_compile(module, kind, gpu_arch) for kind in ("ptx", "cubin"))
    hinted, bare = hints_in_ptx(ptx.decode())
    _compare("PTX", promised, hinted, bare)
    if find_nvdisasm() is None:
        _warn("nvdisasm (pip install nvidia-cuda-nvdisasm) is missing: the SASS was not looked at")
        return
    _compare("SASS", hinted, *hints_in_sass(disassemble(cubin), Target.parse(gpu_arch)))


def _compile(module: ir.Module, kind: str, gpu_arch: str) -> bytes:
    # a context of its own: some releases keep the binaries of one, and refuse a second of the same name
    with ir.Context(), ir.Location.unknown():
        return emit(ir.Module.parse(module.operation.get_asm()), kind, gpu_arch)


def _compare(where: str, promised: Counter[str], found: Counter[str], others: Counter[str]) -> None:
    for kind, count in promised.items():
        message = f"expects {count} {_KINDS[kind]}(s) with a cache policy in {where}, but got {found[kind]}"
        if not found[kind] and others[kind]:
            raise CachePolicyError(message)
        if found[kind] < count:
            _warn(f"{message}: the others were merged, removed, or lost")


def _warn(message: str) -> None:
    warnings.warn(message, CachePolicyWarning, stacklevel=2)
