"""The package as it is distributed: what a wheel and an sdist hold, and that a wheel works where it is installed."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

hatchling = pytest.importorskip("hatchling.build", reason="needs hatchling, which builds the package")

ROOT = Path(__file__).parents[2]


def build(source: Path, target: Path, kind: str) -> Path:
    """The wheel or the sdist made of the tree `source`."""
    code = f"import sys, hatchling.build as b; print(b.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, target], cwd=source, check=True, capture_output=True, text=True)
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def unpacked_sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, target, "sdist")) as archive:
        archive.extractall(target, filter="data")
    (tree,) = (path for path in target.iterdir() if path.is_dir())
    return tree


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.endswith(".py")}


def test_wheel_holds_the_sources_and_nothing_else(wheel: Path) -> None:
    sources = {f"cute_cache_policy/{path.name}" for path in (ROOT / "python/cute_cache_policy").glob("*.py")}
    passes = {f"cute_cache_policy/passes/{path.name}" for path in (ROOT / "passes").glob("*.py")}
    assert contents(wheel) == sources | passes


def test_wheel_works(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (scripts,) = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "cute-cache-policy-opt = cute_cache_policy.opt:main" in scripts.read_text()
    code = "import cute_cache_policy.passes as p; print(p.__file__, *p.PASSES)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    file, *passes = done.stdout.split()
    assert file == str(tmp_path / "cute_cache_policy/passes/__init__.py")
    assert "convert-invariant-copy-to-nvvm" in passes


def test_sdist_makes_the_same_wheel(wheel: Path, unpacked_sdist: Path, tmp_path: Path) -> None:
    # `python/cute_cache_policy/passes` is a link, which archives and builders treat in their own ways
    assert contents(build(unpacked_sdist, tmp_path, "wheel")) == contents(wheel)


def test_sdist_has_what_a_developer_needs(unpacked_sdist: Path) -> None:
    for path in ("README.md", "LICENSE", "CMakeLists.txt", "passes", "test/unit", "test/compile", "examples"):
        assert (unpacked_sdist / path).exists(), path
