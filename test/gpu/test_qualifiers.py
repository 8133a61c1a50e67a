"""Every load that an invariant copy can ask for, executed: the data is right."""

from __future__ import annotations

import numpy as np
import pytest
from cutlass import Int64, Uint8, cute

from support.device import Array, capability
from support.forms import THREADS, copy_forms, forms

POLICIES = {"evict_first": 0x12F0000000000000, "evict_last": 0x14F0000000000000}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128, 256])
def test_every_form_copies_its_data(bits: int, policy: str) -> None:
    if bits == 256 and capability() < (10, 0):
        pytest.skip("256-bit loads with a static L2 priority need sm_100")
    chosen = forms(bits)
    source = np.random.default_rng(0).integers(0, 256, (len(chosen), THREADS * bits // 8), dtype=np.uint8)
    arrays = [Array(source), Array(~source)]
    pointers = [array.pointer(Uint8) for array in arrays]
    compiled = cute.compile(copy_forms, *pointers, chosen, Int64(POLICIES[policy]), options="--honor-cache-policy")
    compiled(*pointers, Int64(POLICIES[policy]))
    wrong = (source != arrays[1].numpy()).any(axis=1)
    assert [form for form, is_wrong in zip(chosen, wrong) if is_wrong] == []
