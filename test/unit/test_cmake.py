"""CMakeLists.txt: the command in README.md configures, and `check` covers every suite."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None or shutil.which("make") is None:
        pytest.skip("needs cmake and make")
    build = tmp_path_factory.mktemp("build")
    command = ["cmake", "-S", ROOT, "-B", build, "-G", "Unix Makefiles", f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(command, check=True, capture_output=True)
    return build


def commands(build: Path, target: str) -> str:
    """What building a target would run."""
    dry_run = ["cmake", "--build", build, "--target", target, "--", "--dry-run"]
    return subprocess.run(dry_run, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("check-ir", "/lit -v test --filter-out compile/"),
        ("check-compile", "/lit -v test --filter compile/"),
        ("check-unit", "-m pytest test/unit"),
        ("check-matrix", "-m pytest test/matrix"),
        ("check-gpu", "-m pytest test/gpu --sanitize -n auto"),
        ("check-lint", "-m ruff check"),
        ("check-lint", "-m pyright"),
    ],
)
def test_target(build: Path, target: str, command: str) -> None:
    assert command in commands(build, target)
    assert command in commands(build, "check")


def test_readme_names_every_target() -> None:
    suites = re.findall(r"^check_target\((\w+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    readme = (ROOT / "README.md").read_text()
    assert suites
    assert [suite for suite in suites if f"`check-{suite}`" not in readme] == []
