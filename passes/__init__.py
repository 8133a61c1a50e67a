"""The passes, one a file. To register a pass, add its class to `PASSES`."""

from __future__ import annotations

from cute_cache_policy.pass_manager import Pass

from .convert_async_copy_to_nvvm import ConvertAsyncCopyToNVVM
from .convert_coherent_copy_to_nvvm import ConvertCoherentCopyToNVVM
from .convert_invariant_copy_to_nvvm import ConvertInvariantCopyToNVVM
from .convert_universal_copy_to_nvvm import ConvertUniversalCopyToNVVM
from .infer_invariant_copy import InferInvariantCopy
from .strip_policy_record import StripPolicyRecord
from .verify_cache_policy import VerifyCachePolicy

__all__ = [
    "PASSES",
    "ConvertAsyncCopyToNVVM",
    "ConvertCoherentCopyToNVVM",
    "ConvertInvariantCopyToNVVM",
    "ConvertUniversalCopyToNVVM",
    "InferInvariantCopy",
    "StripPolicyRecord",
    "VerifyCachePolicy",
]

#: Every pass, by its name on the command line.
PASSES: dict[str, type[Pass]] = {
    pass_.name: pass_
    for pass_ in (
        ConvertInvariantCopyToNVVM,
        ConvertCoherentCopyToNVVM,
        ConvertUniversalCopyToNVVM,
        ConvertAsyncCopyToNVVM,
        InferInvariantCopy,
        VerifyCachePolicy,
        StripPolicyRecord,
    )
}
