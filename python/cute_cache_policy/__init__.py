"""Cache policies that CuTe DSL copies keep.

Importing the package registers its compile options with nvidia-cutlass-dsl and changes nothing else:

    cute.compile(f, ..., options="--honor-cache-policy")
    cute.compile[cute_cache_policy.HonorCachePolicy](f, ...)
    CUTE_DSL_COMPILER_OPT=honor-cache-policy
"""

from __future__ import annotations

from .caching import cache_key
from .diagnostics import CachePolicyError, CachePolicyWarning
from .options import HonorCachePolicy, InferInvariantCopy, VerifyCachePolicy, install
from .policies import (
    EVICT_FIRST,
    EVICT_LAST,
    EVICT_NORMAL,
    EVICT_UNCHANGED,
    evict_first,
    evict_last,
    evict_normal,
    evict_unchanged,
    fractional,
)
from .policies import range as range  # not in `__all__`: a star import is to leave loops as they are
from .reporting import open_report as report
from .restriction import restrict

__all__ = [
    "EVICT_FIRST",
    "EVICT_LAST",
    "EVICT_NORMAL",
    "EVICT_UNCHANGED",
    "CachePolicyError",
    "CachePolicyWarning",
    "HonorCachePolicy",
    "InferInvariantCopy",
    "VerifyCachePolicy",
    "cache_key",
    "evict_first",
    "evict_last",
    "evict_normal",
    "evict_unchanged",
    "fractional",
    "report",
    "restrict",
]

install()
