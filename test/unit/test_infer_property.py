"""Random copies: `infer-invariant-copy` makes all loads of a copy non-coherent, and they load what the copy loaded."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cute_cache_policy
from support.cells import BITS, LAYOUTS, TYPES, Cell

CELLS = [Cell(t, bits, layout, tail) for t in TYPES for bits in BITS for layout in LAYOUTS for tail in (False, True)]
TARGETS = ["sm_80", "sm_90a", "sm_100a"]


def loaded_bits(mnemonic: str) -> int:
    """The bits that one load loads."""
    match = re.search(r"(?:\.v(\d))?\.b(\d+)$", mnemonic)
    assert match, mnemonic
    return int(match[1] or 1) * int(match[2])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
@given(cell=st.sampled_from([cell for cell in CELLS if cell.exists]), target=st.sampled_from(TARGETS))
def test_a_random_copy_becomes_non_coherent_as_a_whole(cell: Cell, target: str) -> None:
    with cute_cache_policy.report() as report:
        replace(cell, invariant=False).compile(f"--infer-invariant-copy --gpu-arch {target}")
    inferred = [record for record in report if record.remark]
    loads = {name: count for record in inferred for name, count in record.emitted.items()}
    assert loads and all(name.startswith("ld.global.nc.L2::cache_hint.") for name in loads)
    # a wide load is split no further than the target asks for
    assert {loaded_bits(name) for name in loads} == {min(cell.bits, 256 if target == "sm_100a" else 128)}
    # records count a loop once that the compiler does not unroll as a whole
    if cell.layout_name not in ("dynamic_shape", "unrolled"):
        total = sum(count * loaded_bits(name) for record in inferred for name, count in record.emitted.items())
        assert total == cell.vectors * cell.bits
