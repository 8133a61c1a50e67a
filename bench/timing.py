"""Measuring competitors side by side."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping

import torch
from cuda.bindings import runtime

__all__ = ["copy_bandwidth", "flush_l2", "interleaved"]


def _graph(launch: Callable[[], None]) -> torch.cuda.CUDAGraph:
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph


def flush_l2(evictor: torch.Tensor) -> None:
    """Leave nothing of earlier launches in the L2, and no line with a priority that a competitor gave it.

    Reads rather than writes `evictor`: dirty lines would be written back on the next kernel's time.
    """
    (error,) = runtime.cudaCtxResetPersistingL2Cache()
    assert error == runtime.cudaError_t.cudaSuccess, error
    evictor.sum()


def interleaved(launches: Mapping[str, Callable[[], None]], rounds: int = 25, seed: int = 0) -> dict[str, list[float]]:
    """Milliseconds of every launch in every round, each on a cold L2, in an order that changes every round."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    evictor = torch.ones(4 * properties.L2_cache_size // 4, dtype=torch.float32, device="cuda")
    graphs = {name: _graph(launch) for name, launch in launches.items()}
    shuffle = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in launches}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number in range(rounds + 2):
        order = list(graphs)
        shuffle.shuffle(order)
        for name in order:
            flush_l2(evictor)
            begin.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            if number >= 2:  # two rounds to warm up
                times[name].append(begin.elapsed_time(end))
    return times


def copy_bandwidth(size: int = 1 << 30) -> float:
    """Bytes read plus bytes written per second of a kernel that copies, measured like everything else."""
    source = torch.randint(0, 1 << 30, (size // 4,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    # a kernel, not a copy engine as in target.copy_(source)
    times = interleaved({"copy": lambda: torch.bitwise_not(source, out=target)})["copy"]
    return 2 * size / (statistics.median(times) / 1000)
