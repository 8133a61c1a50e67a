"""The passes, one a file. To register a pass, add its class to `PASSES`."""

from __future__ import annotations

from cute_cache_policy.pass_manager import Pass

from .convert_invariant_copy_to_nvvm import ConvertInvariantCopyToNVVM

__all__ = ["PASSES"]

#: Every pass, by its name on the command line.
PASSES: dict[str, type[Pass]] = {pass_.name: pass_ for pass_ in (ConvertInvariantCopyToNVVM,)}
