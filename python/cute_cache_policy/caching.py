"""What a compile cache has to know of this package."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from . import _dsl

__all__ = ["cache_key"]


def cache_key() -> str:
    """A string that changes whenever this package may compile a kernel otherwise, for people's own compile caches.

    It holds a digest of the code of this package, the version of the DSL, and the options that are on in every compile
    of the process. Options of a single compile, and `CUTE_DSL_COMPILER_OPT`, are the cache's own business. The DSL's
    cache needs none of it: it is keyed by the IR that our passes have left.
    """
    always = "".join(f"+{name}" for name in _dsl.turned_on())
    return f"cute-cache-policy-{_digest()}-dsl-{_dsl.version()}{always}"


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256()
    here = Path(__file__).parent
    # the passes may be a link
    for file in sorted([*here.glob("*.py"), *(here / "passes").glob("*.py")]):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]
