"""What `_dsl.py` assumes about nvidia-cutlass-dsl, one assumption a test: a release that moves one fails here first."""

import importlib.metadata
import inspect
from typing import Any

import cutlass.base_dsl.compiler as dsl_compiler
import pytest
from cutlass import cute
from cutlass._mlir import ir
from cutlass._mlir.passmanager import PassManager
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.base_dsl.compiler import CompileCallable, CompileOptions
from cutlass.base_dsl.dsl import BaseDSL, DSLSingletonMeta
from cutlass.cute.atom import Atom, Trait
from cutlass.cute.nvgpu import CopyG2ROp
from cutlass.cute.nvgpu.common import CopyG2RTrait, CopyR2GTrait, CopyUniversalTrait
from cutlass.cute.nvgpu.cpasync.copy import CopyG2STrait
from cutlass.cutlass_dsl import CuTeDSL

import cute_cache_policy
from cute_cache_policy import HonorCachePolicy, _dsl
from support.copy_kernel import arguments, compile_to_ptx, launch, loads


def parameters(function: Any) -> list[str]:
    """The names of the parameters of the DSL's own function, beneath a wrapper of ours."""
    return list(inspect.signature(function).parameters)


@pytest.fixture
def dsl() -> Any:
    return CuTeDSL._get_dsl()


def test_the_compiler_still_drops_the_policy() -> None:
    # the day this fails, the pass has nothing left to do
    assert loads(compile_to_ptx()) == ["ld.global.nc.v4.b32"]


def test_version_is_a_supported_one() -> None:
    assert (4, 6) <= tuple(map(int, _dsl.version().split(".")[:2])) < (5, 0)


def test_version_is_that_of_the_distribution() -> None:
    assert _dsl.version() == importlib.metadata.version("nvidia-cutlass-dsl")


def test_version_needs_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    known = _dsl.version()
    monkeypatch.setattr(importlib.metadata, "distribution", _no_distribution)
    assert _dsl.version() == known
    assert known in cute_cache_policy.cache_key()


def _no_distribution(name: str) -> Any:
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.mark.skipif(not _dsl.HAS_OPTION_REGISTRY, reason="needs the option registry of 4.7")
def test_options_are_registered_and_the_parser_is_built_of_them() -> None:
    assert HonorCachePolicy in dsl_compiler._OPTION_REGISTRY
    _, option_of, _ = dsl_compiler._build_string_api_tables()
    assert option_of["honor_cache_policy"] is HonorCachePolicy
    assert callable(dsl_compiler._build_string_api_tables.cache_clear)


@pytest.mark.skipif(_dsl.HAS_OPTION_REGISTRY, reason="needs the fixed set of options up to 4.6")
def test_options_are_made_by_a_constructor_and_a_parser() -> None:
    assert parameters(CompileOptions.__init__) == ["self", "options"]
    assert parameters(dsl_compiler._parse_compile_options_from_str) == ["options"]


def test_compile_options_map_classes_to_options() -> None:
    chosen = CompileOptions(HonorCachePolicy(True))
    assert chosen.options[HonorCachePolicy].value is True
    assert CompileOptions().options[HonorCachePolicy].value is False


def test_our_options_never_reach_the_pipeline() -> None:
    assert CompileOptions(HonorCachePolicy(True)).to_str() == CompileOptions().to_str()


def test_the_environment_variable_is_applied_to_the_options_of_each_compile(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dsl.envar, "compiler_opt", "honor-cache-policy")
    chosen = CompileOptions()
    chosen.apply_envar_settings(dsl.envar, "name")
    assert chosen.options[HonorCachePolicy].value is True


def test_an_option_string_forgets_the_options_in_brackets() -> None:
    seen = []
    compiler = cute.compile[HonorCachePolicy]
    assert compiler._compile_options.options[HonorCachePolicy].value is True
    # what the DSL does beneath our wrapper
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_dsl.CompileCallable, "_compile", inspect.unwrap(CompileCallable._compile))
        patch.setattr(BaseDSL, "_run_trace_finalize_hooks", lambda self, *_: seen.append(self.compile_options))
        compiler(launch, *arguments(), options="--opt-level 2 --gpu-arch sm_90a")
    assert [options.options[HonorCachePolicy].value for options in seen] == [False]


def test_the_hook_point_runs_once_after_the_trace_and_before_the_hash(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []

    def run_hooks(self: Any, module: ir.Module, name: str) -> None:
        events.append(("trace", "cute.copy" in str(module), "launch" in name))

    monkeypatch.setattr(BaseDSL, "_run_trace_finalize_hooks", run_hooks)
    monkeypatch.setattr(BaseDSL, "get_module_hash", lambda *_: events.append(("hash",)))
    monkeypatch.setattr(dsl.envar, "dryrun", True)
    launch(*arguments())
    assert events == [("trace", True, True), ("hash",)]


def test_the_target_of_a_compile_is_known_to_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = []
    monkeypatch.setattr(
        BaseDSL, "_run_trace_finalize_hooks", lambda self, *_: targets.append(self.compile_options.gpu_arch)
    )
    cute.compile(launch, *arguments(), options="--gpu-arch sm_100a")
    assert targets == ["sm_100a"]


def test_the_target_of_a_compile_without_one_is_in_the_environment(dsl: Any) -> None:
    assert CompileOptions().gpu_arch == ""
    assert dsl.envar.arch is None or dsl.envar.arch.startswith("sm_")


def test_options_do_not_outlive_a_compile(dsl: Any) -> None:
    cute.compile[HonorCachePolicy](launch, *arguments())
    assert dsl.compile_options.options[HonorCachePolicy].value is False
    assert dsl in DSLSingletonMeta._instances.values()


def test_an_error_takes_a_line() -> None:
    error = DSLUserCodeError("expects this", filename=__file__, lineno=1)
    assert f"{__file__}:1" in str(error)


def test_an_error_without_a_line_skips_frames_of_files_in_angle_brackets() -> None:
    namespace: dict[str, Any] = {"__name__": "elsewhere", "error": DSLUserCodeError}
    exec(compile("def make(): return error('expects this')", "<elsewhere>", "exec"), namespace)
    assert "namespace['make']()" in str(namespace["make"]()).replace('"', "'")


def test_atoms_are_made_with_keywords() -> None:
    positional, *keywords = parameters(CopyG2ROp._make_trait)[1:]
    assert positional == "copy_internal_type"
    assert {"num_bits_per_copy", "invariant", "loc", "ip"} <= set(keywords)


@pytest.mark.parametrize("function", [Atom._unpack, Trait.with_, Trait.unpack])
def test_policies_pass_through_two_functions_that_take_any_keyword(function: Any) -> None:
    assert any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


@pytest.mark.parametrize("trait", [CopyUniversalTrait, CopyG2STrait])
def test_atoms_without_a_field_for_a_policy_ignore_it(trait: Any) -> None:
    assert trait.unpack is Trait.unpack


def test_the_compiler_has_one_ptxas_or_does_not_say() -> None:
    version = _dsl.ptxas_version()
    assert version is None or (len(version) == 3 and version >= (13, 0, 0))


@pytest.mark.parametrize("trait", [CopyG2RTrait, CopyR2GTrait])
def test_copies_hand_their_policy_to_the_trait(trait: Any) -> None:
    policy = inspect.signature(trait.unpack).parameters["cache_policy"]
    assert policy.kind is inspect.Parameter.KEYWORD_ONLY


def test_the_pipeline_is_one_pass_with_options(dsl: Any) -> None:
    pipeline = dsl.preprocess_pipeline(dsl._get_pipeline(None), "sm_90a")
    assert pipeline.startswith("builtin.module(cute-to-nvvm{")
    assert pipeline.endswith("})")


@pytest.mark.parametrize("name", ["cute-expand-ops", "canonicalize", "cse"])
def test_passes_have_names(name: str) -> None:
    assert name in _dsl.compiler_passes()
    with ir.Context():
        PassManager.parse(f"builtin.module(any({name}))")


def test_targets_have_names() -> None:
    assert {"sm_80", "sm_90a", "sm_100a", "sm_120a"} <= set(_dsl.architectures())


def test_a_missing_part_is_named() -> None:
    with pytest.raises(ImportError, match=r"expects a nvidia-cutlass-dsl with 'BaseDSL\.gone' .*, but got 4\."):
        _dsl._wrap(BaseDSL, "gone", lambda original: original)
