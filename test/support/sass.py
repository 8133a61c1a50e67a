"""SASS of a cubin, for tests: by the nvdisasm that the tests depend on."""

from __future__ import annotations

from cute_cache_policy.codegen import disassemble
from cute_cache_policy.sass import Access, global_accesses

__all__ = ["Access", "disassemble", "global_accesses"]
