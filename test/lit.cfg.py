"""lit configuration: `lit test` runs every .mlir and .py file here that has a RUN line.

Substitutions: `cute-cache-policy-opt`, `FileCheck` and `%python` all use the interpreter that runs lit.
Features: `dsl-<major>.<minor>`, the installed release of nvidia-cutlass-dsl, for `REQUIRES:` and `UNSUPPORTED:`.
"""

# lit defines `config` and `lit_config`
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import os
import sys
from importlib.metadata import version
from pathlib import Path

import lit.formats

here = Path(__file__).parent

config.name = "cute-cache-policy"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py"]
# run by pytest
config.excludes = ["lit.cfg.py", "conftest.py", "test_lit.py", "support", "unit", "gpu", "matrix"]
config.test_source_root = str(here)
config.test_exec_root = lit_config.params.get("build", str(here.parent / "build" / "test"))

config.substitutions += [
    ("cute-cache-policy-opt", f"{sys.executable} -m cute_cache_policy.opt"),
    (r"\bFileCheck\b", f"{sys.executable} -m filecheck"),
    ("%python", sys.executable),
]

# lit starts tests with an empty environment, so that no CUTE_DSL_* setting of the user reaches them
if "CUDA_VISIBLE_DEVICES" in os.environ:
    config.environment["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
# for the package `support`
config.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(here)]))
config.environment["CUTE_DSL_NO_CACHE"] = "1"

major, minor = version("nvidia-cutlass-dsl").split(".")[:2]
config.available_features.add(f"dsl-{major}.{minor}")
