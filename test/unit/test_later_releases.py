"""What the plugin does on releases of the DSL to come: each is stood in for by the change that it may bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cutlass import BFloat16, Int64, cute
from cutlass._mlir import ir
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.nvgpu.common import CopyG2RTrait
from cutlass.cute.runtime import make_fake_compact_tensor

from cute_cache_policy.atoms import AtomType
from cute_cache_policy.bindings import operands
from cute_cache_policy.expansion import Expander
from cute_cache_policy.passes.convert_invariant_copy_to_nvvm import InvariantCopyPattern
from support.scale import EVICT_FIRST, HINTED, arguments, launch, loads

OFF = "--gpu-arch sm_90a"
ON = f"{OFF} --honor-cache-policy"


@pytest.fixture
def refuse_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pull request 3727: a Python check that raises where an invariant atom gets a policy."""
    original = CopyG2RTrait.unpack

    def unpack(self: Any, *, cache_policy: Any = None, **fields: Any) -> Any:
        if cache_policy is not None and "invariant = true" in str(self.value.type):
            raise DSLUserCodeError("invariant=True cannot be combined with cache_policy")
        return original(self, cache_policy=cache_policy, **fields)

    monkeypatch.setattr(CopyG2RTrait, "unpack", unpack)


@cute.kernel
def tiled(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 32), stride=(32, 1)), cute.make_layout((1, 8)))
    thread, _, _ = cute.arch.thread_idx()
    source, target = (copy.get_slice(thread).partition_S(cute.local_tile(t, (4, 256), (0, 0))) for t in (x, y))
    fragment = cute.make_fragment_like(source)
    cute.copy(copy, source, fragment, cache_policy=Int64(EVICT_FIRST))
    cute.autovec_copy(fragment, target)


@cute.jit
def launch_tiled(x: cute.Tensor, y: cute.Tensor):
    tiled(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


@cute.kernel
def set_on_the_atom(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((8,), BFloat16)
    source, target = (cute.local_tile(t, (1, 8), (0, 0)) for t in (x, y))
    cute.copy(atom.with_(cache_policy=Int64(EVICT_FIRST)), source[0, None], fragment)
    cute.autovec_copy(fragment, target[0, None])


@cute.jit
def launch_set_on_the_atom(x: cute.Tensor, y: cute.Tensor):
    set_on_the_atom(x, y).launch(grid=[1, 1, 1], block=[128, 1, 1])


def matrices() -> tuple[cute.Tensor, cute.Tensor]:
    shape = (4, 256)
    x, y = (make_fake_compact_tensor(BFloat16, shape, stride_order=(1, 0), assumed_align=16) for _ in range(2))
    return x, y


@pytest.mark.usefixtures("refuse_the_pair")
@pytest.mark.parametrize("host", [launch_tiled, launch_set_on_the_atom])
def test_a_refused_policy_is_attached_in_spite_of_the_check(host: Any, tmp_path: Path) -> None:
    cute.compile(host, *matrices(), options=f"{ON} --keep-ptx --dump-dir {tmp_path}")
    assert loads(tmp_path) == [HINTED]


@pytest.mark.usefixtures("refuse_the_pair")
def test_with_the_option_off_the_check_has_its_way() -> None:
    with pytest.raises(DSLUserCodeError, match="invariant=True cannot be combined with cache_policy"):
        cute.compile(launch, *arguments(), options=OFF)


@pytest.mark.usefixtures("refuse_the_pair")
def test_what_is_refused_for_another_reason_stays_refused() -> None:
    @cute.kernel
    def wrong_policy(x: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), BFloat16, num_bits_per_copy=128, invariant=True)
        cute.copy(atom, x, cute.make_rmem_tensor(x.shape, BFloat16), cache_policy="evict_first")

    @cute.jit
    def launch_wrong_policy(x: cute.Tensor):
        wrong_policy(x).launch(grid=[1, 1, 1], block=[1, 1, 1])

    with pytest.raises(DSLUserCodeError, match="expects Int64, int or CacheEvictionPriority, but got"):
        cute.compile(launch_wrong_policy, matrices()[0], options=ON)


def test_a_compiler_that_keeps_the_policy_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its expansion of an invariant copy uses the policy, as today's does for the atom that is not invariant."""

    expand = Expander.expand

    def as_if_not_invariant(self: Expander, copy: ir.Operation, atom_type: ir.Type | None, sets_policy: bool) -> Any:
        type_ = operands(copy)[0].type
        atom = AtomType.of(type_)
        assert atom is not None
        return expand(self, copy, atom_type or atom.coherent(type_), sets_policy)

    monkeypatch.setattr(Expander, "expand", as_if_not_invariant)
    monkeypatch.setattr(InvariantCopyPattern, "keeps_policy", None)
    module = str(cute.compile.to_precompiled_mlir(launch, *arguments(), options=ON))
    assert "invariant = true>, !memref" in module
    assert "ld.global" not in module


def test_a_release_without_the_hook_point_is_named() -> None:
    program = """
from cutlass.base_dsl.dsl import BaseDSL
del BaseDSL._run_trace_finalize_hooks
import cute_cache_policy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    message = "ImportError: cute-cache-policy expects a nvidia-cutlass-dsl with 'BaseDSL._run_trace_finalize_hooks'"
    assert done.returncode == 1 and message in done.stderr
