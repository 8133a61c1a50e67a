"""The compile options: every way to spell them, what they go together with, and that off means off."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cutlass import cute
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.base_dsl.compiler import DumpDir
from cutlass.base_dsl.dsl import BaseDSL
from cutlass.cutlass_dsl import CuTeDSL

from cute_cache_policy import CachePolicyError, HonorCachePolicy, options
from support import copy_kernel
from support.copy_kernel import arguments, compile_to_ptx, launch, loads

STOCK = ["ld.global.nc.v4.b32"]
HINTED = ["ld.global.nc.L2::cache_hint.v4.b32"]

TEST = Path(__file__).parents[1]


def run_python(code: str, **environment: str) -> str:
    """The standard output of a program in a fresh process, where `import cutlass` and its environment count anew."""
    path = os.pathsep.join([str(TEST), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def stock_ptx() -> str:
    """The PTX of the stock compiler, in a process that never imports the package."""
    return run_python("from support.copy_kernel import *; print(compile_to_ptx(), end='')")


@pytest.fixture
def kept_artifacts(tmp_path: Path) -> tuple[Any, ...]:
    """The options of `compile_to_ptx` as objects."""
    return cute.GPUArch("sm_90a"), cute.KeepPTX, DumpDir(str(tmp_path))


def test_off_is_the_stock_compiler_byte_for_byte(stock_ptx: str) -> None:
    assert loads(stock_ptx) == STOCK
    assert compile_to_ptx() == stock_ptx


def test_option_string() -> None:
    assert loads(compile_to_ptx("--honor-cache-policy")) == HINTED


@pytest.mark.parametrize("others", ["--opt-level 2", "--generate-line-info --opt-level 1", "--ptxas-options '-v'"])
def test_option_string_with_other_options(others: str) -> None:
    assert loads(compile_to_ptx(f"{others} --honor-cache-policy")) == HINTED
    assert loads(compile_to_ptx(f"--honor-cache-policy {others}")) == HINTED


def test_brackets(kept_artifacts: tuple[Any, ...]) -> None:
    assert loads(cute.compile[(HonorCachePolicy, *kept_artifacts)](launch, *arguments()).artifacts.PTX) == HINTED
    assert loads(cute.compile[(HonorCachePolicy(False), *kept_artifacts)](launch, *arguments()).artifacts.PTX) == STOCK
    assert loads(cute.compile[kept_artifacts](launch, *arguments()).artifacts.PTX) == STOCK


def test_brackets_beside_an_option_string() -> None:
    compiler = cute.compile[HonorCachePolicy]
    assert loads(compile_to_ptx("--opt-level 2", compiler)) == HINTED
    assert loads(compile_to_ptx("--honor-cache-policy", compiler)) == HINTED
    assert loads(compile_to_ptx("--opt-level 2", cute.compile[HonorCachePolicy(False)])) == STOCK


@pytest.mark.parametrize(
    "value", ["honor-cache-policy", "honor-cache-policy,opt-level=2", "opt-level=2 honor-cache-policy"]
)
def test_environment_variable(value: str) -> None:
    code = "import cute_cache_policy; from support.copy_kernel import *; print(*loads(compile_to_ptx()))"
    assert run_python(code, CUTE_DSL_COMPILER_OPT=value).split() == HINTED


def test_environment_variable_and_an_import_after_earlier_objects(tmp_path: Path) -> None:
    # `cute.compile` and the user's own callable both made their options before the package was known
    code = """if True:
        from cutlass import cute
        mine = cute.compile[cute.OptLevel(2)]
        import cute_cache_policy
        from support.copy_kernel import *
        for compiler in (cute.compile, mine):
            print(*loads(compiler(launch, *arguments()).artifacts.PTX))
    """
    settings = {"ARCH": "sm_90a", "KEEP": "ptx", "DUMP_DIR": str(tmp_path), "COMPILER_OPT": "honor-cache-policy"}
    printed = run_python(code, **{f"CUTE_DSL_{name}": value for name, value in settings.items()})
    assert printed.split() == HINTED * 2


def test_import_after_earlier_compiles() -> None:
    code = """if True:
        from support.copy_kernel import *
        print(*loads(compile_to_ptx()))
        import cute_cache_policy
        print(*loads(compile_to_ptx("--honor-cache-policy")))
        print(*loads(compile_to_ptx()))
    """
    assert run_python(code).split() == STOCK + HINTED + STOCK


def test_two_compiles_in_one_process_do_not_touch_each_other(stock_ptx: str) -> None:
    first = compile_to_ptx("--honor-cache-policy")
    assert compile_to_ptx() == stock_ptx
    assert compile_to_ptx("--honor-cache-policy") == first
    assert compile_to_ptx() == stock_ptx


def test_a_failed_compile_leaves_the_option_off(stock_ptx: str) -> None:
    with pytest.raises(Exception, match="argument"):
        cute.compile(launch, options="--honor-cache-policy")
    assert compile_to_ptx() == stock_ptx


def test_importing_again_takes_the_place_of_the_first_import() -> None:
    code = """if True:
        import importlib, sys
        import cute_cache_policy
        from cutlass import cute
        from support.copy_kernel import *

        def show():
            print(*loads(compile_to_ptx("--honor-cache-policy")))
            print(*loads(compile_to_ptx("", cute.compile[cute_cache_policy.HonorCachePolicy])))
            print(*loads(compile_to_ptx()))

        show()
        importlib.reload(cute_cache_policy)
        show()
        for name in [name for name in sys.modules if name.startswith("cute_cache_policy")]:
            del sys.modules[name]
        import cute_cache_policy
        show()
    """
    assert run_python(code).split() == (HINTED * 2 + STOCK) * 3


@pytest.fixture
def module_hashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The hashes by which the DSL looks traced modules up in its compile cache; nothing is compiled or launched."""
    hashes: list[str] = []
    original = BaseDSL.get_module_hash

    def get_module_hash(self: BaseDSL, *args: Any) -> str:
        hashes.append(original(self, *args))
        return hashes[-1]

    monkeypatch.setattr(BaseDSL, "get_module_hash", get_module_hash)
    monkeypatch.setattr(CuTeDSL._get_dsl().envar, "dryrun", True)
    yield hashes


def test_on_and_off_never_share_a_compile_cache_entry(
    module_hashes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in ("", "", "honor-cache-policy", "honor-cache-policy"):
        monkeypatch.setattr(CuTeDSL._get_dsl().envar, "compiler_opt", option)
        copy_kernel.launch(*arguments())
    off, off_again, on, on_again = module_hashes
    assert off == off_again
    assert on == on_again
    assert on != off


def fail(*_: Any, **__: Any) -> None:
    raise CachePolicyError("expects this, but got that")


def test_an_error_shows_the_line_of_the_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "run", fail)
    with pytest.raises(DSLUserCodeError, match="expects this, but got that") as caught:
        cute.compile[HonorCachePolicy](launch, *arguments())
    assert "cute.compile[HonorCachePolicy](launch, *arguments())" in str(caught.value)


def test_an_error_of_the_dsl_still_shows_the_line_of_the_user() -> None:
    with pytest.raises(DSLUserCodeError) as caught:
        cute.compile(len)
    assert Path(__file__).name in str(caught.value)


@pytest.mark.parametrize("before", ["", "opt-level=2 ", "honor-cache-policy,"])
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("honor-cache-polcy", "honor-cache-policy"),
        ("honour_cache_policy", "honor-cache-policy"),
        ("--infer-invariant-copies", "infer-invariant-copy"),
        ("verify-cache-policies=true", "verify-cache-policy"),
    ],
)
def test_a_misspelt_option_in_the_environment_is_named(
    before: str, word: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CuTeDSL._get_dsl().envar, "compiler_opt", before + word)
    got = word.strip("-").partition("=")[0]
    with pytest.raises(DSLUserCodeError, match=f"'CUTE_DSL_COMPILER_OPT' expects '{meant}', but got '{got}'"):
        cute.compile(launch, *arguments(), options="--gpu-arch sm_90a")


def test_options_of_the_dsl_in_the_environment_are_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "opt-level=2 preserve-line-info=true honor-cache-policy verify-cache-policy"
    monkeypatch.setattr(CuTeDSL._get_dsl().envar, "compiler_opt", text)
    cute.compile(launch, *arguments(), options="--gpu-arch sm_90a")
