"""The examples run, and show what they are there to show."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_streams_needs_no_createpolicy_and_no_coherent_load() -> None:
    command = [sys.executable, EXAMPLES / "two_streams.py", "sm_100a"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = (re.findall(r"createpolicy|ld\S+cache_hint\S+", half) for half in done.stdout.split("after:"))
    load = "L2::cache_hint.v4.b32"
    assert before == ["createpolicy", f"ld.global.{load}"] * 2
    assert after == [f"ld.global.nc.{load}"] * 2
