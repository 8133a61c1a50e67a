"""What `--honor-cache-policy` costs at compile time. Needs no GPU.

    python -m bench.compile_time                    measure, print a table, write bench/results/compile_time.{csv,png}
    python -m bench.compile_time --check            exit 1 if a target is missed

Every row of the CSV is one pair of runs in one process, with the option off and on in turn, of a kernel with some
number of copies in scope:

- `compile`: `cute.compile`, from tracing to cubin, in ms;
- `trace`: `cute.compile.to_precompiled_mlir`, which stops in front of the compiler: what an implicit call of a
  `@cute.jit` function pays on every call;
- `hook`: the part of a trace in which the passes run, in ms;
- `pass`: `convert-invariant-copy-to-nvvm` alone, on what was traced, over and over, each time in a fresh context.

The hook takes longer than the pass: it comes after some milliseconds of tracing, which leave little of it in the caches
of the processor, and its first larger allocation makes the allocator tidy up what tracing has freed; the DSL pays for
that right after the hook if the option is off.

All times are CPU time of the process: others on a shared machine lengthen it less than elapsed time.

Targets: with 200 copies the hook takes at most 5 % of the compile; with one copy the pass takes at most 1 ms; with the
option off the hook takes at most 50 microseconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cutlass
import matplotlib.pyplot as plt
import pandas as pd
from cutlass import Float32, Int64, cute
from cutlass._mlir import ir
from cutlass.base_dsl.dsl import BaseDSL
from cutlass.cute.runtime import make_fake_compact_tensor

import cute_cache_policy  # noqa: F401 - registers the option
from cute_cache_policy.pass_manager import run
from cute_cache_policy.passes import ConvertInvariantCopyToNVVM

RESULTS = Path(__file__).parent / "results"
EVICT_FIRST = 0x12F0000000000000
VECTOR, THREADS = 4, 128

#: Copies in one kernel, and how many pairs of runs of each kind to take the median of.
SIZES = (1, 10, 100, 200, 1000)
PAIRS = {"compile": {1: 15, 10: 9, 100: 5, 200: 5, 1000: 2}, "trace": {1: 100, 10: 15, 100: 3, 200: 3, 1000: 1}}


@cute.kernel
def copies(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    atom = cute.make_copy_atom(cute.nvgpu.CopyG2ROp(), Float32, num_bits_per_copy=32 * VECTOR, invariant=True)
    thread, _, _ = cute.arch.thread_idx()
    for i in cutlass.range_constexpr(count):
        fragment = cute.make_rmem_tensor((VECTOR,), Float32)
        where = (thread + THREADS * i,)
        cute.copy(atom, cute.local_tile(x, (VECTOR,), where), fragment, cache_policy=Int64(EVICT_FIRST))
        cute.autovec_copy(fragment, cute.local_tile(y, (VECTOR,), where))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    copies(x, y, count).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])


class Hook:
    """Times the trace hooks of the DSL, ours among them."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.module: str | None = None
        original = BaseDSL._run_trace_finalize_hooks

        def timed(dsl: Any, module: Any, name: str) -> None:
            if self.module is None:
                self.module = module.operation.get_asm(enable_debug_info=True)
            start = time.process_time()
            original(dsl, module, name)
            self.ms = 1e3 * (time.process_time() - start)

        BaseDSL._run_trace_finalize_hooks = timed


def pairs(compile_: Callable[..., Any], hook: Hook, count: int, number: int) -> Iterator[dict[str, float]]:
    """`number` pairs of runs for a kernel with `count` copies."""
    x, y = (make_fake_compact_tensor(Float32, (VECTOR * THREADS * count,), assumed_align=16) for _ in range(2))
    for pair in range(-1, number):
        row: dict[str, float] = {"copies": count, "pair": pair}
        for state, options in {"off": "", "on": " --honor-cache-policy"}.items():
            start = time.process_time()
            compile_(launch, x, y, count, options="--gpu-arch sm_90a" + options)
            row[f"total_{state}"] = 1e3 * (time.process_time() - start)
            row[f"hook_{state}"] = hook.ms
        if pair >= 0:  # the first is to warm up
            yield row


def pass_alone(hook: Hook, count: int, number: int) -> Iterator[dict[str, float]]:
    """`number` runs of the pass on a module with `count` copies; `hook_off` is an empty pipeline."""
    hook.module = None
    next(pairs(cute.compile.to_precompiled_mlir, hook, count, 1))
    pass_ = ConvertInvariantCopyToNVVM(gpu_arch="sm_90a")
    for run_ in range(-5, number):
        row: dict[str, float] = {"copies": count, "pair": run_}
        for state, passes in {"off": [], "on": [pass_]}.items():
            with ir.Context():
                module = ir.Module.parse(hook.module)
                start = time.process_time()
                run(module, passes, verify=False)
                row[f"hook_{state}"] = 1e3 * (time.process_time() - start)
                del module  # here, not while the next one is timed
        if run_ >= 0:
            yield row


def measure() -> pd.DataFrame:
    """All runs, one row a pair; times in ms."""
    hook = Hook()
    runs = {"compile": cute.compile, "trace": cute.compile.to_precompiled_mlir}
    rows = [
        {"kind": kind, **row}
        for kind, compile_ in runs.items()
        for count in SIZES
        for row in pairs(compile_, hook, count, PAIRS[kind][count])
    ]
    rows += [{"kind": "pass", **row} for count in SIZES for row in pass_alone(hook, count, PAIRS["trace"][count])]
    return pd.DataFrame(rows).round(4)


def summary(data: pd.DataFrame) -> pd.DataFrame:
    """Medians by kind and number of copies; `added` is the median over pairs of the whole difference on - off."""
    data = data.assign(added=data.total_on - data.total_off, share=100 * data.hook_on / data.total_on)
    medians = data.groupby(["kind", "copies"]).median().drop(columns="pair")
    return medians.assign(hook_us_per_copy=1e3 * medians.hook_on / medians.index.get_level_values("copies")).round(3)


def missed(medians: pd.DataFrame) -> list[str]:
    """The targets that were missed."""
    # `dict` for pyright: pandas types a cell as any scalar
    compiled, traced, alone = (medians.loc[kind].to_dict("index") for kind in ("compile", "trace", "pass"))
    limits = [
        (compiled[200]["share"], 5.0, "% of the compile of 200 copies is the hook"),
        (alone[1]["hook_on"], 1.0, "ms for the pass on one copy"),
        (1e3 * max(row["hook_off"] for row in traced.values()), 50.0, "us with the option off"),
        (
            traced[1000]["hook_us_per_copy"] / traced[100]["hook_us_per_copy"],
            1.25,
            "times the cost of a copy, 1000:100",
        ),
    ]
    return [f"{value:.3g} {what}, at most {limit:g} wanted" for value, limit, what in limits if value > limit]


def plot(medians: pd.DataFrame, path: Path) -> None:
    """The time of the hook over the number of copies, beside that of the whole compile."""
    compiled = medians.loc["compile"]
    _, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.loglog(compiled.index, compiled.total_off, "o-", label="compile, option off")
    axes.loglog(compiled.index, compiled.hook_on, "s-", label="passes of the option")
    axes.set(xlabel="copies in the kernel", ylabel="ms", title="Compile time of --honor-cache-policy")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    plt.savefig(path, dpi=120)


def main() -> int:
    """Measure, print, write, check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write, default %(default)s")
    arguments = parser.parse_args()
    data = measure()
    medians = summary(data)
    print(medians.to_string())
    arguments.results.mkdir(exist_ok=True)
    data.to_csv(arguments.results / "compile_time.csv", index=False)
    plot(medians, arguments.results / "compile_time.png")
    problems = missed(medians)
    print("\n".join(problems) or "all targets met")
    return int(arguments.check and bool(problems))


if __name__ == "__main__":
    sys.exit(main())
