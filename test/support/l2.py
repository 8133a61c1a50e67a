"""Counting the sectors that a kernel reads through L2 by their eviction class, with Nsight Compute."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys

import pytest

__all__ = ["CLASSES", "shares"]

CLASSES = ("evict_first", "evict_last", "evict_normal")

#: Sectors read from memory of the GPU: all, and those of one class. A sector that crosses to the other half of the L2
#: counts in both, so that the sum is more than what the kernel reads.
_ALL = "lts__t_sectors_aperture_device_op_read.sum"
_METRIC = "lts__t_sectors_aperture_device_op_read_{}.sum"


def shares(script: str, kernel: str) -> list[dict[str, float]]:
    """Run a Python script; for each launch of a kernel in it, the share of each class in the sectors it reads.

    `kernel` is a regular expression for its name. Skips the test where the counters cannot be read.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("Nsight Compute (ncu) is missing")
    names = {_ALL: "all", **{_METRIC.format(name): name for name in CLASSES}}
    command = [
        ncu,
        "--csv",
        "--clock-control",
        "none",
        "--kernel-name",
        f"regex:{kernel}",
        "--metrics",
        ",".join(names),
        sys.executable,
        script,
    ]
    # the script imports what the test does
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=paths, capture_output=True, text=True, check=False)
    if "LibraryNotLoaded" in done.stdout or "ERR_NVGPUCTRPERM" in done.stdout:
        pytest.skip("the GPU does not let Nsight Compute read its hardware counters")
    assert done.returncode == 0, done.stdout + done.stderr
    launches: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(done.stdout[done.stdout.index('"ID"') :].splitlines()):
        launches.setdefault(row["ID"], {})[names[row["Metric Name"]]] = float(row["Metric Value"].replace(",", ""))
    return [{name: sectors[name] / sectors["all"] for name in CLASSES} for sectors in launches.values()]
