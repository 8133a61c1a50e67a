"""What the lit tests in `test/compile` are made of: compile a kernel, print what came out.

    # RUN: %python %s sm_90a --honor-cache-policy | FileCheck %s

The first argument of a test is the target, all others are compile options.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from cutlass import cute

import cute_cache_policy  # noqa: F401 - registers the options
from cute_cache_policy.codegen import disassemble
from cute_cache_policy.ptx import Target
from cute_cache_policy.sass import global_accesses

__all__ = ["show"]


def show(function: Any, *arguments: Any, title: str = "") -> None:
    """Compile `function` for what the command line says; print its PTX, and its accesses of global memory in SASS."""
    arch, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        keep = f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {directory}"
        compiled = cute.compile(function, *arguments, options=" ".join([keep, *options]))
        print(f"=== PTX {title}\n{compiled.artifacts.PTX}")
        sass = disassemble(compiled.artifacts.CUBIN)
        print(f"=== SASS {title}", *global_accesses(sass, Target.parse(arch)), sep="\n")
