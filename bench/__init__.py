"""Benchmark of cache policies on invariant loads: `python -m bench` on a machine with an NVIDIA GPU."""
