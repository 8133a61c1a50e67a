"""compute-sanitizer finds nothing in the kernels of the other GPU tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is missing")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

HERE = Path(__file__).parent
SUITE = ("test_values.py", "test_in_place.py")


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_the_suite_is_clean(tool: str, tmp_path: Path) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is missing")
    command = [sanitizer, "--tool", tool, "--target-processes", "all", "--log-file", str(tmp_path / "%p.log")]
    workers = str(min(16, os.cpu_count() or 1))
    suite = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        workers,
        "-p",
        "no:cacheprovider",
        *(str(HERE / f) for f in SUITE),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([*command, *suite], capture_output=True, text=True, check=False, env=environment)
    logs = [log.read_text() for log in tmp_path.glob("*.log")]
    if any("Device not supported" in log for log in logs):
        pytest.skip("compute-sanitizer does not support the GPU, or how it is reached")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    summaries = [line for log in logs for line in re.findall(r"[A-Z]+ SUMMARY: .*", log)]
    assert summaries, logs
    assert [line for line in summaries if not re.search(r"SUMMARY: 0 ", line)] == []
