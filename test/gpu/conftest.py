"""`pytest test/gpu` ends with a short report, also in `build/test/gpu-report.txt`.

`-n auto` (pytest-xdist) is several times as fast. With `--sanitize` the whole suite runs under compute-sanitizer, too.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import cutlass
import pytest

from support import device

ROOT = Path(__file__).parents[2]
OUTCOMES = ("passed", "failed", "error", "skipped")
#: Files whose tests stand alone; in every other one they share processes that are started once.
SPREAD = ("test_sanitizer.py", "test_values.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sanitize", action="store_true", help="run the GPU tests under compute-sanitizer, too")
    parser.addoption("--part", metavar="I/N", help="run part I (0 is the first) of N of the GPU tests")


@pytest.fixture(scope="session", autouse=True)
def gpu() -> None:
    """Skips every test in this folder where there is no GPU."""
    if not device.is_available():
        pytest.skip("there is no GPU")


def _scope(nodeid: str) -> str:
    """Tests with the same scope are to run in the same process."""
    file = nodeid.split("::")[0]
    return nodeid if file.endswith(SPREAD) else file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # last, so that Nsight Compute does not count what they do
    items.sort(key=lambda item: item.path.name == "test_sanitizer.py")
    if part := config.getoption("--part", default=None):
        index, count = map(int, part.split("/"))
        scopes = {scope: number for number, scope in enumerate(dict.fromkeys(_scope(item.nodeid) for item in items))}
        items[:] = [item for item in items if scopes[_scope(item.nodeid)] % count == index]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Lets pytest-xdist give the tests of a scope to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    here = str(Path(__file__).parent.relative_to(ROOT))
    counts: dict[str, Counter[str]] = {}
    for outcome in OUTCOMES:
        for report in terminalreporter.getreports(outcome):
            if report.nodeid.startswith(here):
                counts.setdefault(report.nodeid.split("::")[0], Counter())[outcome] += 1
    if not any(outcomes["passed"] + outcomes["failed"] for outcomes in counts.values()):
        return
    lines = [f"{name}: {value}" for name, value in _environment().items()]
    for file, outcomes in sorted(counts.items()):
        lines.append(f"{file}: " + ", ".join(f"{outcomes[o]} {o}" for o in OUTCOMES if outcomes[o]))
    sanitized: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        sanitized.update(dict(report.user_properties))
    lines += [f"{name} found nothing in {count} of these tests" for name, count in sanitized.items()]
    terminalreporter.section("GPU report")
    for line in lines:
        terminalreporter.line(line)
    report = ROOT / "build" / "test" / "gpu-report.txt"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("\n".join(lines) + "\n")


def _environment() -> dict[str, str]:
    """What the tests ran on."""
    found = {"Python": platform.python_version(), "nvidia-cutlass-dsl": cutlass.__version__}
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if shutil.which(query[0]):
        gpus = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
        found["GPU, driver"] = gpus[0]
    return found
