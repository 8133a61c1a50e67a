"""Programs that know nothing of the package: run through it, in other processes, compiled both ways in one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cute_cache_policy
from cute_cache_policy import autoload

PROGRAM = """
import sys
from cutlass import Float32, Int64, cute
from cutlass.cute.runtime import make_fake_compact_tensor

@cute.kernel
def copy(source: cute.Tensor, target: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=128, invariant=True)
    fragment = cute.make_rmem_tensor((4,), Float32)
    cute.copy(atom, cute.local_tile(source, (4,), (thread,)), fragment, cache_policy=Int64(0x12F0000000000000))
    cute.autovec_copy(fragment, cute.local_tile(target, (4,), (thread,)))

@cute.jit
def launch(source: cute.Tensor, target: cute.Tensor):
    copy(source, target).launch(grid=[1, 1, 1], block=[32, 1, 1])

def ptx(options=""):
    tensors = [make_fake_compact_tensor(Float32, (128,), assumed_align=16) for _ in range(2)]
    compiled = cute.compile(launch, *tensors, options=f"--gpu-arch sm_90a --keep-ptx --dump-dir {DUMP} {options}")
    return "hinted" if ".nc.L2::cache_hint" in str(compiled.artifacts.PTX) else "bare"

print(sys.argv[1:], ptx(), "cute_cache_policy" in sys.modules)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace("{DUMP}", str(tmp_path)))
    return file


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.mark.parametrize("flags", [[], ["--verify"]])
def test_program_runs_with_the_option_on(program: Path, flags: list[str]) -> None:
    done = python("-m", "cute_cache_policy", *flags, program, "--verify", "x")
    assert done.stdout == "['--verify', 'x'] hinted True\n", done.stderr
    assert python(program).stdout == "[] bare False\n"


@pytest.mark.parametrize("program", [["missing.py"], ["-m", "missing"], ["-m", "missing.part"], ["."]], ids=" ".join)
def test_no_such_program(program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done, plain = python("-m", "cute_cache_policy", *program), python(*program)
    assert done.returncode == plain.returncode != 0
    assert re.fullmatch(r"python -m cute_cache_policy: error: expects a program to run, but got: .+\n", done.stderr)


@pytest.mark.parametrize("mistake", ["open('missing')", "import missing", "import runpy; runpy.run_path('missing')"])
def test_what_a_program_misses_is_its_own_error(mistake: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(mistake)
    done = python("-m", "cute_cache_policy", program)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and str(program) in done.stderr


@pytest.fixture
def loaded(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that have autoload on: `.pth` files count in the user's site folder alone."""
    base = tmp_path / "user"
    site = Path(python("-m", "site", "--user-site", PYTHONUSERBASE=str(base)).stdout.strip())
    site.mkdir(parents=True)
    assert not autoload.switch("status", site)
    assert autoload.switch("on", site)
    root = Path(autoload.__file__).parents[1]
    # a virtual environment has no user site: what its .pth files do is done by sitecustomize here
    (site / "sitecustomize.py").write_text(f"import site; site.addsitedir({str(site)!r})")
    return {"PYTHONPATH": os.pathsep.join([str(site), str(root)]), "site": str(site)}


def test_environment_variable_works_without_an_import(program: Path, loaded: dict[str, str]) -> None:
    site = Path(loaded.pop("site"))
    variable = {"CUTE_DSL_COMPILER_OPT": "honor-cache-policy", "PYTHONDONTWRITEBYTECODE": ""}
    assert python(program, **loaded, **variable).stdout == "[] hinted True\n"
    # nothing is imported where nobody asks
    assert python(program, **loaded).stdout == "[] bare False\n"
    assert not autoload.switch("off", site)
    assert python(program, **loaded, **variable).returncode != 0
    assert not list(site.rglob("*cache_policy*"))


def test_cost_of_autoload_where_the_dsl_is_not_used(loaded: dict[str, str]) -> None:
    loaded.pop("site")
    listed = "import sys; print(sorted(sys.modules))"
    with_it = python("-c", listed, **loaded)
    assert "'_cute_cache_policy_autoload'" in with_it.stdout
    assert "'cutlass'" not in with_it.stdout and "'cute_cache_policy'" not in with_it.stdout
    timed = (
        "import sys, time; sys.modules.pop('_cute_cache_policy_autoload'); began = time.perf_counter();"
        "import _cute_cache_policy_autoload; print(time.perf_counter() - began)"
    )
    assert min(float(python("-c", timed, **loaded).stdout) for _ in range(3)) < 1e-3


def test_both_ways_in_one_process(program: Path) -> None:
    program.write_text(
        program.read_text().rpartition("print")[0]
        + "import cute_cache_policy\non = '--honor-cache-policy'\nprint(ptx(), ptx(on), ptx(), ptx(on), ptx())\n"
    )
    done = python(program)
    assert done.stdout == "bare hinted bare hinted bare\n", done.stderr


def test_cache_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cute_cache_policy.cache_key()
    assert key == cute_cache_policy.cache_key()
    assert key.startswith("cute-cache-policy-") and "-dsl-4." in key
    monkeypatch.setattr(cute_cache_policy._dsl, "_turned_on", {cute_cache_policy.HonorCachePolicy})
    assert cute_cache_policy.cache_key() == f"{key}+honor-cache-policy"


def test_autoload_survives_its_package(tmp_path: Path) -> None:
    autoload.switch("on", tmp_path)
    program = (
        f"import site, sys; site.addsitedir({str(tmp_path)!r})\n"
        "sys.modules['cute_cache_policy'] = None  # uninstalled\n"
        "import cutlass\n"
    )
    done = python("-c", program, CUTE_DSL_COMPILER_OPT="honor-cache-policy", PYTHONPATH=os.pathsep.join(sys.path))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "cute_cache_policy is not installed; delete this file" in done.stderr


def test_autoload_survives_a_look_for_the_dsl(tmp_path: Path) -> None:
    """Many programs ask `find_spec` whether a package is there before they import it."""
    autoload.switch("on", tmp_path)
    program = (
        f"import site; site.addsitedir({str(tmp_path)!r})\n"
        "import importlib.util, sys\n"
        "assert importlib.util.find_spec('cutlass')\n"
        "import cutlass\n"
        "print('cute_cache_policy' in sys.modules)\n"
    )
    done = python("-c", program, CUTE_DSL_COMPILER_OPT="honor-cache-policy", PYTHONPATH=os.pathsep.join(sys.path))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
