"""Every load that an invariant copy can ask for, executed: the data is right."""

from __future__ import annotations

import pytest
from cutlass import Int64, Uint8, cute
from cutlass.cute.runtime import from_dlpack

from support.forms import THREADS, copy_forms, forms

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

POLICIES = {"evict_first": 0x12F0000000000000, "evict_last": 0x14F0000000000000}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128, 256])
def test_every_form_copies_its_data(bits: int, policy: str) -> None:
    if bits == 256 and torch.cuda.get_device_capability() < (10, 0):
        pytest.skip("256-bit loads with a static L2 priority need sm_100")
    chosen = forms(bits)
    source = torch.randint(0, 256, (len(chosen) * THREADS * bits // 8,), dtype=torch.uint8, device="cuda")
    target = torch.zeros_like(source)
    tensors = [from_dlpack(tensor, assumed_align=32) for tensor in (source, target)]
    assert tensors[0].element_type is Uint8
    arguments = (*tensors, chosen, Int64(POLICIES[policy]))
    compiled = cute.compile(copy_forms, *arguments, options="--honor-cache-policy")
    compiled(*tensors, Int64(POLICIES[policy]))
    torch.cuda.synchronize()
    wrong = (source != target).reshape(len(chosen), -1).any(dim=1).tolist()
    assert [form for form, is_wrong in zip(chosen, wrong) if is_wrong] == []
