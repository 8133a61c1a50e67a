"""Runs the lit suites under pytest, so that one command runs every test: `python -m pytest`."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: The folders with lit tests, by their RUN lines.
SUITES = sorted(
    {path.parent for path in HERE.glob("*/*") if path.is_file() and "RUN: " in path.read_text().partition("\n")[0]}
)


@pytest.mark.parametrize("suite", [path.name for path in SUITES])
def test_lit(suite: str) -> None:
    # not `-m lit`: the package has no __main__
    lit = [sys.executable, "-c", "from lit.main import main; main()", "-v", HERE / suite]
    done = subprocess.run(lit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout
