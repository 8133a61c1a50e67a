"""The driver: what it reads, runs and prints, and what it says about input that it cannot use."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from cute_cache_policy import codegen, expansion, opt, pipeline
from cute_cache_policy.diagnostics import CachePolicyError
from cute_cache_policy.passes import PASSES

PASS = "convert-invariant-copy-to-nvvm"

COPY = """\
!atom = !cute_nvgpu.atom.g2r<f32 copy_bits = 128 invariant = true>
!gmem = !cute.memref<f32, gmem, align<16>, "(4):(1)">
!rmem = !cute.memref<f32, rmem, align<16>, "(4):(1)">
func.func @copy(%atom: !atom, %src: !gmem, %dst: !rmem, %policy: i64) {
  %hinted = cute_nvgpu.atom.set_value<cache_policy>(%atom, %policy) : (!atom, i64)
  cute.copy(%hinted, %src, %dst) : (!atom, !gmem, !rmem)
  return
}
"""

#: A kernel with one hinted store, enough to compile to device code.
KERNEL = """\
gpu.module @kernels {
  cuda.kernel @kernel(%to: !llvm.ptr<1>, %value: i32) attributes {cute.kernel, gpu.kernel} {
    llvm.store %value, %to : i32, !llvm.ptr<1>
    cuda.return
  }
}
"""

DEAD_AND_TWICE = """\
func.func @f(%x: i32) -> i32 {
  %dead = arith.muli %x, %x : i32
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  %c = arith.muli %a, %b : i32
  return %c : i32
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "copy.mlir"
    path.write_text(COPY)
    return path


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the driver."""
    status = opt.main([str(argument) for argument in arguments])
    printed, errors = capfd.readouterr()
    return status, printed, errors


def test_prints_what_it_parsed(capfd: pytest.CaptureFixture[str], source: Path, tmp_path: Path) -> None:
    status, printed, errors = run(capfd, source)
    assert (status, errors) == (0, "")
    (tmp_path / "again.mlir").write_text(printed)
    assert run(capfd, tmp_path / "again.mlir") == (0, printed, "")


def test_reads_standard_input(capfd: pytest.CaptureFixture[str], source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(capfd, source, f"-{PASS}")
    monkeypatch.setattr(sys, "stdin", io.StringIO(COPY))
    assert run(capfd, f"-{PASS}") == expected
    assert "ld.global.nc.L2::cache_hint.v4.b32" in expected[1]


def test_writes_a_file(capfd: pytest.CaptureFixture[str], source: Path, tmp_path: Path) -> None:
    _, expected, _ = run(capfd, source)
    assert run(capfd, source, "-o", tmp_path / "out") == (0, "", "")
    assert (tmp_path / "out").read_text() == expected


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_flags_and_pipeline_are_the_same(capfd: pytest.CaptureFixture[str], source: Path, dashes: str) -> None:
    passes = [f"{dashes}{PASS}=gpu-arch=sm_90a", f"{dashes}cute-expand-ops", f"{dashes}canonicalize=top-down=false"]
    text = f"builtin.module({PASS}{{gpu-arch=sm_90a}}, cute-expand-ops, canonicalize{{top-down=false}})"
    assert run(capfd, source, *passes) == run(capfd, f"--pass-pipeline={text}", source)


def test_passes_run_in_the_order_of_their_flags(capfd: pytest.CaptureFixture[str], source: Path) -> None:
    # once the compiler has expanded the copy, nothing is left for our pass
    _, ours_first, _ = run(capfd, f"-{PASS}", source, "-cute-expand-ops")
    _, ours_last, _ = run(capfd, "-cute-expand-ops", source, f"-{PASS}")
    assert "ld.global.nc" in ours_first
    assert "ld.global.nc" not in ours_last


def test_runs_passes_of_the_compiler(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(DEAD_AND_TWICE)
    assert run(capfd, tmp_path / "f.mlir")[1].count("arith.") == 4
    assert run(capfd, tmp_path / "f.mlir", "-cse")[1].count("arith.") == 2
    assert run(capfd, tmp_path / "f.mlir", "--pass-pipeline=builtin.module(func.func(cse))")[1].count("arith.") == 2
    assert run(capfd, tmp_path / "f.mlir", "--pass-pipeline=builtin.module(gpu.module(cse))")[1].count("arith.") == 4


def test_gpu_arch_is_the_default_target_of_passes(capfd: pytest.CaptureFixture[str], source: Path) -> None:
    wide = COPY.replace("128", "256").replace("align<16>", "align<32>").replace("(4)", "(8)")
    source.write_text(wide)
    assert ".v8.b32" in run(capfd, source, f"-{PASS}", "--gpu-arch=sm_100a")[1]
    assert ".v8.b32" not in run(capfd, source, f"-{PASS}", "--gpu-arch", "sm_90a")[1]
    assert ".v8.b32" not in run(capfd, source, f"-{PASS}=gpu-arch=sm_90a", "--gpu-arch=sm_100a")[1]


def test_prints_generic_ops_and_locations(capfd: pytest.CaptureFixture[str], source: Path) -> None:
    assert '"cute.copy"(' in run(capfd, source, "-mlir-print-op-generic")[1]
    assert ":6:3)" in run(capfd, source, "-mlir-print-debuginfo")[1]
    assert "loc(" not in run(capfd, source)[1]


def test_lists_passes(capfd: pytest.CaptureFixture[str]) -> None:
    status, printed, _ = run(capfd, "--list-passes")
    assert status == 0
    for name in [*PASSES, "canonicalize", "cse", "cute-expand-ops"]:
        assert f"  --{name}\n" in printed
    assert "gpu-arch (default: sm_80)" in printed


def test_emits_device_code(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "kernel.mlir"
    path.write_text(KERNEL)
    ptx = run(capfd, path, "--emit=ptx", "--gpu-arch=sm_90a")[1]
    assert ".target sm_90a" in ptx
    assert "st.global.b32" in ptx
    assert run(capfd, path, "--emit=cubin", "-o", tmp_path / "cubin") == (0, "", "")
    assert (tmp_path / "cubin").read_bytes().startswith(b"\x7fELF")
    if codegen.find_nvdisasm() is None:
        pytest.skip("needs nvdisasm (pip install nvidia-cuda-nvdisasm)")
    assert "STG.E" in run(capfd, path, "--emit=sass", "--gpu-arch=sm_120a")[1]


def test_sass_needs_nvdisasm(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel.mlir").write_text(KERNEL)
    monkeypatch.setattr(codegen, "find_nvdisasm", lambda: None)
    status, _, errors = run(capfd, tmp_path / "kernel.mlir", "--emit=sass")
    assert (status, errors.count("\n")) == (1, 1)
    assert "expects nvdisasm" in errors


def test_splits_the_input(capfd: pytest.CaptureFixture[str], source: Path) -> None:
    source.write_text(f"{COPY}// -----\nmodule @empty {{}}\n")
    status, printed, _ = run(capfd, source, "-split-input-file", f"-{PASS}")
    first, second = printed.split("// -----\n")
    assert status == 0
    assert "ld.global.nc" in first
    assert "@empty" in second


def test_a_failed_part_keeps_the_others_and_its_line(capfd: pytest.CaptureFixture[str], source: Path) -> None:
    source.write_text("module @good {}\n// -----\nmodule {\n  bad.op\n}\n")
    status, printed, errors = run(capfd, source, "-split-input-file")
    assert status == 1
    assert "@good" in printed
    assert errors.startswith(f"{source}:4:3: error: ")


OLD_TARGET = f"-{PASS}=gpu-arch=sm_75"


def expecting(*comments: str) -> str:
    """`COPY` with comments above the copy op."""
    return COPY.replace("  cute.copy(", "".join(f"  {comment}\n" for comment in comments) + "  cute.copy(")


@pytest.mark.parametrize(
    "text",
    [
        expecting("// expected-error@+1 {{expects a load that sm_75 has}}"),
        expecting("// expected-error@below {{'cute.copy' op}}"),
        COPY.replace("!rmem)\n", "!rmem) // expected-error {{sm_75}}\n"),
        COPY.replace("  return", "  // expected-error@-1 {{sm_75}}\n  return"),
        COPY.replace("  return", "  // expected-error@above {{sm_75}}\n  return"),
        f"module {{}}\n// -----\n{expecting('// expected-error@+1 {{sm_75}}')}",
    ],
    ids=["next line", "below", "same line", "previous line", "above", "second part"],
)
def test_expected_diagnostics(capfd: pytest.CaptureFixture[str], source: Path, text: str) -> None:
    source.write_text(text)
    status, _, errors = run(capfd, source, OLD_TARGET, "-verify-diagnostics", "-split-input-file")
    assert (status, errors) == (0, "")


@pytest.mark.parametrize(
    "text, complaint",
    [
        (COPY, ":6:3: error: unexpected error: 'cute.copy' op expects a load"),
        (expecting("// expected-error@+2 {{sm_75}}"), ":8: error: expected error was not produced: sm_75"),
        (expecting("// expected-error@+1 {{sm_76}}"), ":7: error: expected error was not produced: sm_76"),
        (expecting("// expected-warning@+1 {{sm_75}}"), ":7: error: expected warning was not produced: sm_75"),
        (expecting(*["// expected-error@below {{sm_75}}"] * 2), ":8: error: expected error was not produced: sm_75"),
        (expecting("// expected-error@+1 {{sm_75}"), "line 6 expects 'expected-<kind>@<line> {{text}}', but got"),
        (expecting("// expected-eror@+1 {{sm_75}}"), "line 6 expects 'expected-<kind>@<line> {{text}}', but got"),
    ],
    ids=["unexpected", "line", "text", "kind", "one for two", "braces", "spelling"],
)
def test_wrong_expectations(capfd: pytest.CaptureFixture[str], source: Path, text: str, complaint: str) -> None:
    source.write_text(text)
    status, _, errors = run(capfd, source, OLD_TARGET, "-verify-diagnostics")
    assert status == 1
    assert complaint in errors


def test_an_expansion_that_fails_is_an_error_at_the_copy(
    capfd: pytest.CaptureFixture[str], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a pipeline that fails on every copy
    monkeypatch.setattr(expansion, "_PIPELINE", "func.func(symbol-dce)")
    status, printed, errors = run(capfd, source, f"-{PASS}")
    assert (status, printed, errors.count("\n")) == (1, "", 1)
    message = "expects an op that 'cute-expand-ops' can expand, but got: "
    assert errors.startswith(f"{source}:6:3: error: 'cute.copy' op {message}")
    assert "does not define a symbol table" in errors


BAD_COMMANDS = {
    "no such file": (["nowhere.mlir"], "cannot read 'nowhere.mlir': No such file or directory"),
    "directory": (["."], "cannot read '.': Is a directory"),
    "binary": (["binary"], "cannot read 'binary': not a text file"),
    "not MLIR": (["prose"], "prose:1:1: error: "),
    "not a module's worth": (["half"], "half:1:"),
    "two inputs": (["copy.mlir", "other.mlir"], "expects one input, but got 'other.mlir'"),
    "output": (["copy.mlir", "-o", "nowhere/out"], "cannot write 'nowhere/out': No such file or directory"),
    "pass": (["copy.mlir", "-no-such-pass"], "'no-such-pass' does not refer to a registered pass"),
    "short flag": (["copy.mlir", "-x"], "'x' does not refer to a registered pass"),
    "pass in a pipeline": (["copy.mlir", "--pass-pipeline=builtin.module(cse,nope)"], "cannot run 'nope'"),
    "option of ours": (["copy.mlir", f"-{PASS}=speed=9"], f"'{PASS}' expects gpu-arch, but got option 'speed'"),
    "option of theirs": (["copy.mlir", "-canonicalize=speed=9"], "cannot run 'canonicalize{speed=9}'"),
    "arch": (["copy.mlir", "--gpu-arch=sm_1"], "--gpu-arch: invalid choice: 'sm_1'"),
    "arch of a pass": (
        ["copy.mlir", f"-{PASS}=gpu-arch=hopper"],
        "expects a GPU architecture such as 'sm_90a', but got",
    ),
    "no arch": (["copy.mlir", "--gpu-arch"], "--gpu-arch: expected one argument"),
    "emit": (["copy.mlir", "--emit=exe"], "--emit: invalid choice: 'exe'"),
    "nothing to emit": (["copy.mlir", "--emit=ptx"], "expects a module with one gpu.module, but got 0"),
    "anchor": (["copy.mlir", "--pass-pipeline=cse"], "expects 'builtin.module(...)', but got 'cse'"),
    "parentheses": (["copy.mlir", "--pass-pipeline=builtin.module(func.func(cse)"], "cannot run 'func.func(cse'"),
    "both": (["copy.mlir", "-cse", "--pass-pipeline=builtin.module()"], "as flags or as --pass-pipeline, but got both"),
    "level of ours": (
        ["copy.mlir", f"--pass-pipeline=builtin.module(gpu.module({PASS}))"],
        f"'{PASS}' expects to stand directly in 'builtin.module(...)', but got 'gpu.module({PASS})'",
    ),
    "level of theirs": (
        ["copy.mlir", "-convert-gpu-to-nvvm"],
        "restricted to 'gpu.module' on a PassManager intended to run on 'builtin.module'",
    ),
    "level of their pipelines": (
        ["copy.mlir", "--pass-pipeline=builtin.module(func.func(cute-to-nvvm{opt-level=3}))"],
        "'cute-to-nvvm' expects to stand directly in 'builtin.module(...)'",
    ),
    "pipeline in an option": (
        ["copy.mlir", "-inline=default-pipeline=cute-to-nvvm"],
        "'cute-to-nvvm' expects to stand directly in 'builtin.module(...)'",
    ),
    "failing pass": (["copy.mlir", "--pass-pipeline=builtin.module(func.func(symbol-dce))"], "copy.mlir:4:1: error: "),
}


@pytest.mark.parametrize("command, complaint", BAD_COMMANDS.values(), ids=BAD_COMMANDS.keys())
def test_bad_input_is_one_line(
    capfd: pytest.CaptureFixture[str],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    complaint: str,
) -> None:
    monkeypatch.chdir(source.parent)
    Path("binary").write_bytes(b"\x7fELF\xff\xfe")
    Path("prose").write_text("import cutlass\n")
    Path("half").write_text("module {")
    status, printed, errors = run(capfd, *command)
    assert (status, printed) == (1, "")
    assert complaint in errors
    assert len(errors.splitlines()) == 1


def test_bad_passes_fail_before_the_input_is_read(capfd: pytest.CaptureFixture[str]) -> None:
    assert "registered pass" in run(capfd, "nowhere.mlir", "-no-such-pass")[2]


def test_elements_may_stand_in_spaces() -> None:
    first, second = pipeline.parse(f" builtin.module( any( cse ) , {PASS}{{ gpu-arch=sm_100a }} ) ", "sm_80")
    assert first == "any( cse )"
    assert second == PASSES[PASS](gpu_arch="sm_100a")  # type: ignore[call-arg]
    with pytest.raises(CachePolicyError):
        pipeline.parse("", "sm_80")


def test_module_and_exit_status(source: Path) -> None:
    driver = [sys.executable, "-m", "cute_cache_policy.opt"]
    good = subprocess.run([*driver, source, "-cse"], capture_output=True, text=True)
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run([*driver, "nowhere"], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (1, "")


def test_a_reader_that_stops_early_is_no_error(source: Path) -> None:
    driver = [sys.executable, "-m", "cute_cache_policy.opt", str(source)]
    with subprocess.Popen(driver, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
