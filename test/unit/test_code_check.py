"""Counting hints behind the compiler, and what a lost one looks like to the user."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest
from cutlass import Boolean, Float32, Int64, cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy  # noqa: F401 - registers the options
from cute_cache_policy import CachePolicyError, CachePolicyWarning, code_check
from cute_cache_policy.ptx import Target

OPTIONS = "--gpu-arch sm_90a --honor-cache-policy --verify-cache-policy"


@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    load = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    store = cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), Float32, num_bits_per_copy=128)
    fragment = cute.make_rmem_tensor((8,), Float32)
    policy = Int64(0x12F0000000000000)
    cute.copy(load, cute.local_tile(source, (8,), (thread,)), fragment, cache_policy=policy)
    cute.copy(store, fragment, cute.local_tile(target, (8,), (thread,)), cache_policy=policy)


@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor):
    copy(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])


def compile_copy(options: str = OPTIONS) -> None:
    tensors = [make_fake_compact_tensor(Float32, (256,), assumed_align=16) for _ in range(2)]
    cute.compile(launch, *tensors, options=options)


def test_promise_is_counted_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Counter[str]] = []
    compare = code_check._compare
    monkeypatch.setattr(code_check, "_compare", lambda *args: (counts.extend(args[1:3]), compare(*args)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CachePolicyWarning)
        compile_copy()
    # promised and in PTX, in PTX and in SASS
    assert counts == [{"ld": 2, "st": 2}] * 4


@pytest.mark.parametrize("kind", ["ld", "st"])
def test_hint_that_the_compiler_loses_is_an_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    emit = code_check.emit

    def lossy(module: object, format: str, gpu_arch: str) -> bytes:
        code = emit(module, format, gpu_arch)  # type: ignore[arg-type]
        if format != "ptx":
            return code
        lines = code.decode().splitlines()
        return "\n".join(t.replace(".L2::cache_hint", "") if f"{kind}.global" in t else t for t in lines).encode()

    monkeypatch.setattr(code_check, "emit", lossy)
    with pytest.raises(DSLUserCodeError, match=r"expects 2 \w+\(s\) with a cache policy in PTX, but got 0"):
        compile_copy()


def test_some_lost_is_a_warning() -> None:
    with pytest.warns(CachePolicyWarning, match="expects 2 load.* in PTX, but got 1: the others were merged"):
        code_check._compare("PTX", Counter(ld=2), Counter(ld=1), Counter())


def test_nothing_left_that_could_have_lost_its_hint() -> None:
    with pytest.warns(CachePolicyWarning, match="but got 0"):
        code_check._compare("PTX", Counter(ld=2), Counter(), Counter(st=1))


def test_hints_in_ptx() -> None:
    hinted, bare = code_check.hints_in_ptx("""
    ld.global.nc.L2::cache_hint.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1], %rd2;
    @%p1 ld.acquire.cta.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;
    ld.global.b32 %r1, [%rd1];
    ld.shared.b32 %r1, [%r2];
    ld.param.b64 %rd1, [global_param_0];
    st.global.L2::cache_hint.b32 [%rd1], %r1, %rd2;
    cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], %r2, [%r3], %rd2;
    """)
    assert hinted == {"ld": 2, "st": 1, "cp": 1}
    assert bare == {"ld": 1}


def test_descriptor_that_nothing_was_written_to() -> None:
    sass = "        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;"
    with pytest.raises(CachePolicyError, match=r"'LDG\.E\.128\.CONSTANT' expects a policy in its descriptor"):
        code_check.hints_in_sass(sass, Target(90, "a"))


def test_lost_policies_are_all_named() -> None:
    with pytest.raises(DSLUserCodeError, match="'g2r' atom that drops it: compile with --honor-cache-policy"):
        compile_copy("--gpu-arch sm_90a --verify-cache-policy")


def test_verification_leaves_no_state() -> None:
    with pytest.raises(DSLUserCodeError):
        compile_copy("--gpu-arch sm_90a --verify-cache-policy")
    compile_copy("--gpu-arch sm_90a")


@cute.kernel
def copy_beside(source: cute.Tensor, target: cute.Tensor, branch: Boolean):
    """A hinted load of generic memory, one in assembly under a predicate, and bare loads of global memory."""
    thread, _, _ = cute.arch.thread_idx()
    policy = Int64(0x12F0000000000000)
    pointer = cute.make_ptr(Float32, source.iterator.toint(), cute.AddressSpace.generic, assumed_align=16)
    fragment = cute.make_rmem_tensor((4,), Float32)
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128)
    if branch:
        atom = atom.with_(cache_policy=policy)
    cute.copy(atom, cute.make_tensor(pointer, cute.make_layout((4,))), fragment)
    word = cute.arch.inline_ptx(
        "{ .reg .pred q; setp.ne.b64 q, {$r1}, 0; @q ld.global.L2::cache_hint.b32 {$w0}, [{$r0}], {$r1}; }",
        write_only_types=[Float32],
        read_only_args=[source.iterator.toint(), policy],
    )
    fragment[0] = fragment[0] + word + source[thread + 64]
    cute.autovec_copy(fragment, cute.local_tile(target, (4,), (thread,)))


@cute.jit
def launch_beside(source: cute.Tensor, target: cute.Tensor, branch: Boolean):
    copy_beside(source, target, branch).launch(grid=[1, 1, 1], block=[32, 1, 1])


def test_only_hints_of_global_memory_are_promised() -> None:
    tensors = [make_fake_compact_tensor(Float32, (256,), assumed_align=16) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CachePolicyWarning)
        cute.compile(launch_beside, *tensors, Boolean(True), options=OPTIONS)
