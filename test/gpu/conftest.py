"""`pytest test/gpu -n 8 --dist loadgroup` ends with a short report, also in `build/test/gpu-report.txt`."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import cutlass
import pytest

ROOT = Path(__file__).parents[2]
OUTCOMES = ("passed", "failed", "error", "skipped")
#: Each of them starts one long process for all of its tests: one worker is to run it.
ONE_WORKER = ("test_l2_sectors.py", "test_policies.py", "test_repairs.py", "test_sanitizer.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in ONE_WORKER:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


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
    terminalreporter.section("GPU report")
    for line in lines:
        terminalreporter.line(line)
    report = ROOT / "build" / "test" / "gpu-report.txt"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text("\n".join(lines) + "\n")


def _environment() -> dict[str, str]:
    """What the tests ran on."""
    found = {"Python": platform.python_version(), "nvidia-cutlass-dsl": cutlass.__version__}
    if importlib.util.find_spec("torch"):
        found["torch"] = importlib.import_module("torch").__version__
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if shutil.which(query[0]):
        gpus = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
        found["GPU, driver"] = gpus[0]
    return found
