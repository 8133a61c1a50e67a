"""The report: one record a copy, with or without our options, and a table of them."""

from __future__ import annotations

import pytest
from cutlass import Constexpr, Float32, Int64, const_expr, cute
from cutlass.cute.nvgpu import CacheEvictionPriority
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy

EVICT_FIRST = 0x12F0000000000000
HONOR = "--honor-cache-policy"


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor, policy: Int64, waits: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    fragment = cute.make_rmem_tensor((8,), Float32)
    if const_expr(waits):
        cute.arch.griddepcontrol_wait()
    cute.copy(load, cute.local_tile(source, (8,), (thread,)), fragment, cache_policy=Int64(EVICT_FIRST))
    cute.copy(store, fragment, cute.local_tile(target, (8,), (thread,)), cache_policy=policy)


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor, policy: Int64, waits: Constexpr):
    copy(source, target, policy, waits).launch(grid=[1, 1, 1], block=[32, 1, 1])


def compile_copy(options: str = "", waits: bool = False) -> None:
    tensors = [make_fake_compact_tensor(Float32, (256,), assumed_align=16) for _ in range(2)]
    cute.compile(launch, *tensors, Int64(1), waits, options=f"--gpu-arch sm_90a {options}")


def test_what_was_emitted() -> None:
    with cute_cache_policy.report() as report:
        compile_copy(HONOR)
    load, store = report
    assert (load.kernel, store.kernel) == ("copy", "copy")
    assert load.asked == "g2r f32 copy_bits = 128 invariant = true"
    assert (load.policy, store.policy) == ("evict_first", "computed")
    assert load.emitted == {"ld.global.nc.L2::cache_hint.v4.b32": 2}
    assert store.emitted == {"st.global.L2::cache_hint.v4.b32": 2}
    assert ", gmem" in load.tensor and ", gmem" in store.tensor
    assert not (load.remark or store.remark or load.lint or store.lint)


@cute.kernel
def copy_qualified(source: cute.Tensor, target: cute.Tensor):
    qualifiers = {
        "l1c_evict_priority": CacheEvictionPriority.NO_ALLOCATE,
        "l2_evict_priority": CacheEvictionPriority.EVICT_LAST,
    }
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=256, invariant=True, **qualifiers)
    fragment = cute.make_rmem_tensor((8,), Float32)
    cute.copy(load, cute.local_tile(source, (8,), (0,)), fragment)
    cute.autovec_copy(fragment, cute.local_tile(target, (8,), (0,)))


@cute.jit
def launch_qualified(source: cute.Tensor, target: cute.Tensor):
    copy_qualified(source, target).launch(grid=[1, 1, 1], block=[1, 1, 1])


def test_qualifiers_are_named_as_they_were_asked_for() -> None:
    tensors = [make_fake_compact_tensor(Float32, (256,), assumed_align=32) for _ in range(2)]
    with cute_cache_policy.report() as report:
        cute.compile(launch_qualified, *tensors, options=f"--gpu-arch sm_100a {HONOR}")
    expected = (
        "g2r f32 copy_bits = 256 l1_cache_evict_priority = no_allocate l2_evict_priority = evict_last invariant = true"
    )
    assert next(iter(report)).asked == expected


def test_what_the_stock_compiler_drops() -> None:
    with cute_cache_policy.report() as report:
        compile_copy()
    assert [record.remark for record in report] == ["cache policy dropped"] * 2
    assert [record.emitted for record in report] == [{"ld.global.nc.v4.b32": 2}, {"st.global.v4.b32": 2}]


@pytest.mark.parametrize("options", [HONOR, f"{HONOR} --generate-line-info"])
def test_lines(options: str) -> None:
    with cute_cache_policy.report() as report:
        compile_copy(options)
    lines = [record.line for record in report if record.line]
    assert len(lines) == 2 and all(line.file == __file__ for line in lines)
    # releases up to 4.6 know the lines of copies anyway
    exact = all(line.exact for line in lines)
    assert exact or "line-info" not in options
    assert len({line.number for line in lines}) == (2 if exact else 1)
    assert ("A line with *" in str(report)) != exact


def test_lint_of_programmatic_dependent_launch() -> None:
    with cute_cache_policy.report() as report:
        compile_copy(HONOR, waits=True)
    load, store = report
    assert "griddepcontrol.wait" in load.lint
    assert not store.lint
    assert "warning: the kernel waits" in str(report)


def test_table() -> None:
    with cute_cache_policy.report() as report:
        compile_copy()
    lines = str(report).splitlines()
    assert lines[0].startswith("copy in ")
    assert lines[1].split() == ["line", "copies", "policy", "emitted", "remark"]
    assert "evict_first" in lines[2] and "2 x ld.global.nc.v4.b32" in lines[2] and lines[2].endswith("dropped")


def test_same_compile_is_recorded_once() -> None:
    with cute_cache_policy.report() as report:
        compile_copy(HONOR)
        compile_copy(HONOR)
        assert len(report) == 2
        compile_copy()
    assert len(report) == 4


def test_reports_nest() -> None:
    with cute_cache_policy.report() as outer:
        with cute_cache_policy.report() as inner:
            compile_copy(HONOR)
        assert len(inner) == len(outer) == 2
    compile_copy(HONOR)
    assert len(outer) == 2


def test_environment(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    compile_copy(HONOR)
    assert "ld.global" not in capfd.readouterr().err
    monkeypatch.setenv("CUTE_CACHE_POLICY_REPORT", "1")
    compile_copy()
    assert "2 x ld.global.nc.v4.b32" in capfd.readouterr().err
