"""`python -m bench`: run every workload and write `bench/results/`.

python -m bench [--only gather ...] [--rounds 41] [--out bench/results]
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path

import pandas as pd
import torch
from rich.progress import track

from . import report
from .competitors import Case
from .timing import copy_bandwidth, interleaved

FAMILIES = ("load_store", "lookup", "rowwise", "gather", "gemv", "inferred")


def measure(case: Case, rounds: int) -> pd.DataFrame:
    """Check every competitor against the reference, then time them side by side: one line a competitor."""
    expected = case.expected()
    for name in list(case.kernels):
        try:
            case.check(name, expected)
        except Exception:  # noqa: BLE001  a competitor that does not run, or is wrong, is reported and left out
            print(f"{case.workload}, {case.shape}: {name} is left out", file=sys.stderr)
            traceback.print_exc()
            del case.kernels[name]
    lines = []
    for name, times in interleaved(case.kernels, rounds).items():
        quartiles = pd.Series(times).quantile([0.25, 0.5, 0.75]).tolist()
        lines.append((case.workload, case.shape, case.bytes, name, *quartiles, rounds))
    columns = ["workload", "shape", "bytes", "competitor", "ms_lower_quartile", "ms", "ms_upper_quartile", "rounds"]
    return pd.DataFrame(lines, columns=columns)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES, help="families of workloads")
    parser.add_argument("--rounds", type=int, default=41, help="timed rounds, of which the median is reported")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("python -m bench: expects an NVIDIA GPU, but found none", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    multiprocessors = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    bandwidth = copy_bandwidth()
    tables = []
    for family in options.only:
        for case in track(importlib.import_module(f"bench.{family}").cases(multiprocessors), family):
            tables.append(measure(case, options.rounds))
            del case
            torch.cuda.empty_cache()
        # an interrupted run leaves what it has measured
        report.write(pd.concat(tables, ignore_index=True), bandwidth, options.out)
    print((options.out / "results.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
