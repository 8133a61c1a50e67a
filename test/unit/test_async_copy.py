"""cp.async with a cache policy: hinted where the embedded ptxas is known to keep it, left alone elsewhere."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

from cute_cache_policy import _dsl
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.ptx import Target
from cute_cache_policy.sass import global_accesses

EVICT_FIRST = 0x12F0000000000000


@cute.kernel
def stage(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    operation = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cute.nvgpu.LoadCacheMode.GLOBAL)
    atom = cute.make_copy_atom(operation, Float32, num_bits_per_copy=128)
    pointer = cute.arch.alloc_smem(Float32, 128, alignment=16)
    staged = cute.local_tile(cute.make_tensor(pointer, cute.make_layout(128)), (4,), (thread,))
    cute.copy(atom, cute.local_tile(source, (4,), (thread,)), staged, cache_policy=Int64(EVICT_FIRST))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.autovec_copy(staged, cute.local_tile(target, (4,), (thread,)))


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor):
    stage(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


@pytest.mark.parametrize("options", ["", "--honor-cache-policy"])
def test_policy_of_cp_async(options: str, tmp_path: Path) -> None:
    tensors = [make_fake_compact_tensor(Float32, (128,), assumed_align=16) for _ in range(2)]
    keep = f"--gpu-arch sm_90a --keep-ptx --keep-cubin --dump-dir {tmp_path}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = cute.compile(launch, *tensors, options=f"{keep} {options}")
    ptx = str(compiled.artifacts.PTX)
    ptxas = _dsl.ptxas_version()
    right = ptxas is not None and ptxas >= (13, 4, 59)
    lost = [warning for warning in caught if "'simt_async_copy' atom that drops it" in str(warning.message)]
    if options and right:
        assert re.search(r"cp\.async\.cg\.shared\.global\.L2::cache_hint \[%r\d+\], \[%rd\d+\], 16, %rd\d+;", ptx)
        accesses = [str(a) for a in global_accesses(disassemble(compiled.artifacts.CUBIN), Target.parse("sm_90a"))]
        assert any(a.startswith("LDGSTS") and a.endswith("policy=0x12f0000000000000") for a in accesses), accesses
        assert not lost
    else:
        assert re.search(r"cp\.async\.cg\.shared\.global \[%r\d+\], \[%rd\d+\], 16, 16;", ptx)
        assert len(lost) == bool(options)
