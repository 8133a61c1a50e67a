"""From a module of CuTe DSL IR to PTX, cubin and SASS, by the compiler's own pipeline."""

from __future__ import annotations

import functools
import importlib.metadata
import shutil
import subprocess
import tempfile
from pathlib import Path

from cutlass._mlir import ir

from . import _dsl
from .bindings import walk
from .diagnostics import CachePolicyError
from .pass_manager import run

__all__ = ["FORMATS", "disassemble", "emit", "find_nvdisasm"]

FORMATS = ("mlir", "ptx", "cubin", "sass")


def emit(module: ir.Module, kind: str, gpu_arch: str) -> bytes:
    """The device code of a module that has one `gpu.module`, in one of `FORMATS` but `mlir`.

    Lowers `module` in place. Raises MLIRError if the compiler cannot lower it, CachePolicyError if there is no
    device code.
    """
    count = sum(op.name == "gpu.module" for op in walk(module.operation))
    if count != 1:
        raise CachePolicyError(f"--emit={kind} expects a module with one gpu.module, but got {count}")
    with tempfile.TemporaryDirectory() as directory:
        run(module, [_dsl.code_generation(gpu_arch, str(Path(directory, "code")))], verify=False)
        suffix = "ptx" if kind == "ptx" else "cubin"
        (code,) = (path.read_bytes() for path in Path(directory).glob(f"*.{suffix}"))
    return disassemble(code).encode() if kind == "sass" else code


def disassemble(cubin: bytes) -> str:
    """SASS of a cubin, by nvdisasm. Raises CachePolicyError if there is none."""
    nvdisasm = find_nvdisasm()
    if nvdisasm is None:
        raise CachePolicyError("SASS expects nvdisasm (pip install nvidia-cuda-nvdisasm), but got none")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([nvdisasm, "-c", file.name], check=True, capture_output=True, text=True).stdout


@functools.cache
def find_nvdisasm() -> str | None:
    """The nvdisasm of the pip package nvidia-cuda-nvdisasm, or else the one on the PATH."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvdisasm") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return next((str(file.locate()) for file in files if file.name == "nvdisasm"), shutil.which("nvdisasm"))
