"""The compile options, and what they do to a traced module."""

from __future__ import annotations

from cutlass._mlir import ir

from . import _dsl, code_check, policies, qualifiers, reporting, restriction
from .atoms import Census, attach_policy, record_policy
from .bindings import remembered_types
from .pass_manager import Pass, run

__all__ = ["HonorCachePolicy", "InferInvariantCopy", "VerifyCachePolicy", "install"]


class HonorCachePolicy(_dsl.FlagOption, name="honor-cache-policy"):
    """Compile option: every copy keeps the cache policy and the load qualifiers it was given, invariant or not.

    Spelled `cute.compile[HonorCachePolicy](f, ...)`, `cute.compile(f, ..., options="--honor-cache-policy")` or
    `CUTE_DSL_COMPILER_OPT=honor-cache-policy`.
    """


class InferInvariantCopy(_dsl.FlagOption, name="infer-invariant-copy"):
    """Compile option: loads from arguments that a kernel provably never writes become non-coherent.

    Using it promises what `__restrict__` does on every pointer argument in CUDA C++: that the tensor arguments of a
    kernel do not overlap, and that nobody else writes them while it runs. To promise it of single arguments, call
    `cute_cache_policy.restrict` in the kernel instead.

    Spelled like `HonorCachePolicy`, with `--infer-invariant-copy`.
    """


class VerifyCachePolicy(_dsl.FlagOption, name="verify-cache-policy"):
    """Compile option: a copy that would lose the cache policy it was given is an error.

    Spelled `cute.compile[VerifyCachePolicy](f, ...)`, `cute.compile(f, ..., options="--verify-cache-policy")` or
    `CUTE_DSL_COMPILER_OPT=verify-cache-policy`. Together with `HonorCachePolicy`, what that repairs is no error.
    """


OPTIONS: list[type[_dsl.FlagOption]] = [HonorCachePolicy, InferInvariantCopy, VerifyCachePolicy]


def passes_for(trace: _dsl.Trace, census: Census) -> list[Pass]:
    """The passes that the options of a trace ask for and that have something to do, in order."""
    from . import passes as rooms

    passes: list[Pass] = []
    if HonorCachePolicy in trace.enabled:
        if any(map(rooms.ConvertInvariantCopyToNVVM.is_for, census.atoms)):
            passes.append(rooms.ConvertInvariantCopyToNVVM(gpu_arch=trace.gpu_arch))
        if any(map(rooms.ConvertCoherentCopyToNVVM.is_for, census.atoms)):
            passes.append(rooms.ConvertCoherentCopyToNVVM())
        if census.has_records:
            passes.append(rooms.ConvertUniversalCopyToNVVM())
            passes.append(rooms.ConvertAsyncCopyToNVVM(gpu_arch=trace.gpu_arch))
    if InferInvariantCopy in trace.enabled or restriction.was_used_in(trace.module.operation):
        # behind the others, so that it sees the loads that they have made
        marked = InferInvariantCopy not in trace.enabled
        passes.append(rooms.InferInvariantCopy(gpu_arch=trace.gpu_arch, only_marked=marked))
    return passes


def checks_for(trace: _dsl.Trace, census: Census) -> list[Pass]:
    """The passes behind those: what looks, and what takes the records of policies out again."""
    from . import passes as rooms

    passes: list[Pass] = []
    if VerifyCachePolicy in trace.enabled:
        passes.append(rooms.VerifyCachePolicy())
    elif trace.enabled and (census.has_records or HonorCachePolicy not in trace.enabled):
        # of the others, --honor-cache-policy repairs all
        passes.append(rooms.VerifyCachePolicy(warn=True))
    if census.has_records:
        passes.append(rooms.StripPolicyRecord())
    return passes


def after_trace(trace: _dsl.Trace) -> None:
    """Run the passes over a traced module."""
    with reporting.compiling(trace.function, trace.gpu_arch), remembered_types():
        # a pass costs time on every call of a jit function, also one that finds nothing
        census = Census.of(trace.module.operation)
        # the DSL verifies the module itself, right after this
        if passes := passes_for(trace, census):
            run(trace.module, passes, verify=False)
        if reporting.active():
            reporting.note_rest(trace.module.operation)
        if checks := checks_for(trace, census):
            run(trace.module, checks, verify=False)
        if VerifyCachePolicy in trace.enabled:
            code_check.check(trace.module, trace.gpu_arch)


def _also(module: ir.Module) -> bool:
    """Whether `after_trace` has work in a trace with all options off."""
    return reporting.active() or restriction.was_used_in(module.operation)


def _records() -> bool:
    """Whether policies that an atom ignores are recorded in what is being traced; `after_trace` takes them out."""
    return reporting.active() or any(map(_dsl.is_on, OPTIONS))


def install() -> None:
    """Register the options with the DSL. Called once, by the import of the package."""
    _dsl.install(OPTIONS, after_trace, also=_also)
    _dsl.refuse_ignored_fields(VerifyCachePolicy, qualifiers.refuse_ignored)
    _dsl.respell_copy_atoms(HonorCachePolicy, qualifiers.respell)
    _dsl.accept_cache_policies(HonorCachePolicy, policies.as_value, attach_policy, record_policy, _records)
