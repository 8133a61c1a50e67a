"""The compile options, and what they do to a traced module."""

from __future__ import annotations

from . import _dsl, policies, qualifiers, reporting
from .atoms import record_policy
from .pass_manager import Pass, run

__all__ = ["HonorCachePolicy", "install"]


class HonorCachePolicy(_dsl.FlagOption, name="honor-cache-policy"):
    """Compile option: every copy keeps the cache policy and the load qualifiers it was given, invariant or not.

    Spelled `cute.compile[HonorCachePolicy](f, ...)`, `cute.compile(f, ..., options="--honor-cache-policy")` or
    `CUTE_DSL_COMPILER_OPT=honor-cache-policy`.
    """


OPTIONS: list[type[_dsl.FlagOption]] = [HonorCachePolicy]


def passes_for(trace: _dsl.Trace) -> list[Pass]:
    """The passes that the options of a trace ask for, in order."""
    from .passes import (
        ConvertAsyncCopyToNVVM,
        ConvertCoherentCopyToNVVM,
        ConvertInvariantCopyToNVVM,
        ConvertUniversalCopyToNVVM,
        StripPolicyRecord,
    )

    passes: list[Pass] = []
    if HonorCachePolicy in trace.enabled:
        passes.append(ConvertInvariantCopyToNVVM(gpu_arch=trace.gpu_arch))
        passes.append(ConvertCoherentCopyToNVVM())
        passes.append(ConvertUniversalCopyToNVVM())
        passes.append(ConvertAsyncCopyToNVVM(gpu_arch=trace.gpu_arch))
    passes.append(StripPolicyRecord())
    return passes


def after_trace(trace: _dsl.Trace) -> None:
    """Run the passes over a traced module."""
    with reporting.compiling(trace.function):
        # the DSL verifies the module itself, right after this
        run(trace.module, passes_for(trace), verify=False)


def _acts() -> bool:
    """Whether `after_trace` will be called for the compile that is being traced."""
    return reporting.active() or any(map(_dsl.is_on, OPTIONS))


def install() -> None:
    """Register the options with the DSL. Called once, by the import of the package."""
    _dsl.install(OPTIONS, after_trace, always=_acts)
    _dsl.respell_copy_atoms(HonorCachePolicy, qualifiers.respell)
    _dsl.accept_cache_policies(HonorCachePolicy, policies.as_value, record_policy, _acts)
