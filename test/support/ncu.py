"""What kernels do on the GPU, as Nsight Compute counts it."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from . import device

__all__ = ["Launch", "profile"]

CLASSES = ("evict_first", "evict_last", "evict_normal")

#: Sectors read from memory of the GPU: all, and those of one class. A sector that crosses to the other half of the L2
#: counts in both, so that the sum is more than what the kernel reads.
ALL_SECTORS = "lts__t_sectors_aperture_device_op_read.sum"
SECTORS = {name: f"lts__t_sectors_aperture_device_op_read_{name}.sum" for name in CLASSES}

#: Instructions that warps executed, such as `6,815,744 (IMAD.MOV.U32: 1,048,576; LDG.E.128.CONSTANT: 524,288; ...)`.
INSTRUCTIONS = "sass__inst_executed_per_opcode_with_modifier_all"


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Attributes:
        shares: the share of each eviction class in the sectors that the kernel reads through L2.
        loads: how many warps executed each load of global memory, by its mnemonic.
    """

    shares: dict[str, float]
    loads: dict[str, int]

    @property
    def non_coherent(self) -> set[bool]:
        """Whether loads of global memory are non-coherent: of some true, of others not."""
        return {".CONSTANT" in mnemonic for mnemonic in self.loads}


def profile(script: str, kernel: str) -> list[Launch]:
    """Run a Python script; what Nsight Compute counts for each launch in it of a kernel.

    `kernel` is a regular expression for its name. Skips the test where the counters cannot be read.
    """
    # the script imports what the test does
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if device.is_sanitized():
        subprocess.run([sys.executable, script], env=environment, check=True)
        pytest.skip("the kernels ran under compute-sanitizer, which excludes Nsight Compute")
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("Nsight Compute (ncu) is missing")
    options = {
        "--clock-control": "none",
        "--kernel-name": f"regex:{kernel}",
        "--metrics": ",".join([ALL_SECTORS, *SECTORS.values(), INSTRUCTIONS]),
        "--print-metric-instances": "details",
    }
    command = [ncu, "--csv", *(word for option in options.items() for word in option), sys.executable, script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "LibraryNotLoaded" in done.stdout or "ERR_NVGPUCTRPERM" in done.stdout:
        pytest.skip("the GPU does not let Nsight Compute read its hardware counters")
    assert done.returncode == 0, done.stdout + done.stderr
    launches: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(done.stdout[done.stdout.index('"ID"') :].splitlines()):
        launches.setdefault(row["ID"], {})[row["Metric Name"]] = row["Metric Value"].replace(",", "")
    return [_launch(metrics) for metrics in launches.values()]


def _launch(metrics: dict[str, str]) -> Launch:
    # some metrics have instances: their values follow in parentheses
    sectors = {name: float(value.split()[0]) for name, value in metrics.items()}
    executed = re.findall(r"(\w[\w.]*): (\d+)", metrics[INSTRUCTIONS])
    return Launch(
        shares={name: sectors[metric] / sectors[ALL_SECTORS] for name, metric in SECTORS.items()},
        loads={mnemonic: int(count) for mnemonic, count in executed if mnemonic.startswith("LDG.")},
    )
