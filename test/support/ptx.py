"""PTX of a kernel, and the loads in it."""

from __future__ import annotations

import re
import tempfile
from typing import Any

from cutlass import cute

import cute_cache_policy  # noqa: F401 - registers the options

__all__ = ["compile_to_ptx", "global_loads"]


def compile_to_ptx(function: Any, *arguments: Any, options: str = "", arch: str = "sm_90a") -> str:
    """The PTX that `function` compiles to."""
    with tempfile.TemporaryDirectory() as directory:
        keep = f"--gpu-arch {arch} --keep-ptx --dump-dir {directory}"
        return cute.compile(function, *arguments, options=f"{keep} {options}").artifacts.PTX


def global_loads(ptx: str) -> list[str]:
    """The mnemonics of the loads of global memory, in the order of the text."""
    return re.findall(r"\bld(?:\.\w+)*\.global[\w.:]*", ptx)
