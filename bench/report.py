"""What a run of the benchmark leaves behind: numbers, a table and a plot."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import textwrap
from pathlib import Path

import pandas as pd

__all__ = ["environment", "plot", "write"]

PLUGIN = "plugin"


def environment() -> dict[str, str]:
    """The GPU, the driver and the versions that numbers came from."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    found = {"GPU": gpu, "driver": driver, "nvcc": nvcc.strip().splitlines()[-1], "Python": platform.python_version()}
    import cute_cache_policy._dsl

    found["nvidia-cutlass-dsl"] = cute_cache_policy._dsl.version()
    for package in ("torch", "triton", "cuda-bindings"):
        found[package] = importlib.metadata.version(package)
    return found


def write(table: pd.DataFrame, bandwidth: float, out: Path) -> None:
    """Write `results.csv`, `results.md` and `results.png`. `bandwidth` is that of a copy, in bytes a second."""
    out.mkdir(parents=True, exist_ok=True)
    table = table.assign(gb_per_s=table.bytes / table.ms / 1e6)
    table["share_of_copy"] = table.gb_per_s * 1e9 / bandwidth
    table.round(5).to_csv(out / "results.csv", index=False)
    versions = ", ".join(f"{name} {value}" for name, value in environment().items())
    note = f"{versions}; copy bandwidth {bandwidth / 1e9:.0f} GB/s"
    legend = "Median milliseconds; MB that have to move, and the plugin's bandwidth"
    (out / "results.md").write_text(f"{_markdown(table)}\n{legend}. {note}.\n")
    plot(table, note, out / "results.png")


def _markdown(table: pd.DataFrame) -> str:
    """One row a workload: milliseconds of each competitor; of the plugin also its bandwidth, and how it stands."""
    times = table.pivot_table(index=["workload", "shape"], columns="competitor", values="ms", sort=False)
    own = table[table.competitor == PLUGIN].set_index(["workload", "shape"])
    names = [*(name for name in times.columns if name != PLUGIN), PLUGIN]
    header = ["workload", "shape", "MB", *names, "GB/s", "of copy", "against best other"]
    lines = [header, ["---"] * len(header)]
    for key, row in times.iterrows():
        cells = [f"{row[name]:.3f}" if row[name] == row[name] else "" for name in names]
        moved, reached, share = own.loc[key, ["bytes", "gb_per_s", "share_of_copy"]]
        ahead = row.drop(PLUGIN).min() / row[PLUGIN] - 1
        lines.append([*key, f"{moved / 1e6:.0f}", *cells, f"{reached:.0f}", f"{share:.0%}", f"{ahead:+.1%}"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plot(table: pd.DataFrame, note: str, path: Path) -> None:
    """Speed of every competitor relative to the plugin: a line of points a row of the table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times = table.pivot_table(index=["workload", "shape"], columns="competitor", values="ms", sort=False)
    relative = times.rdiv(times[PLUGIN], axis=0)[::-1]
    figure, axes = plt.subplots(figsize=(11, 0.27 * len(relative) + 1.5))
    markers = iter("osD^v<>PX*")
    for name in relative.columns.drop(PLUGIN):
        axes.plot(relative[name], range(len(relative)), next(markers), markersize=5, alpha=0.8, label=name)
    axes.axvline(1, color="black", linewidth=1, label=PLUGIN)
    axes.set_yticks(range(len(relative)), [f"{workload}: {shape}" for workload, shape in relative.index], fontsize=8)
    axes.set_ylim(-1, len(relative))
    axes.grid(alpha=0.3)
    axes.set_xlabel(f"speed relative to the plugin: left of 1 is slower\n{textwrap.fill(note, 80)}", fontsize=8)
    figure.legend(loc="upper center", ncols=5, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, dpi=100)
    plt.close(figure)
