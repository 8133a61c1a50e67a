"""Every reach into parts of nvidia-cutlass-dsl that are not its public API, and every difference between its releases.

The rest of the package asks for what it needs by the names below. `test/unit/test_dsl.py` checks each assumption on its
own, so that a release that moves one fails there first.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib.metadata
import inspect
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cutlass
import cutlass.base_dsl.compiler as dsl_compiler
from cutlass._mlir import ir
from cutlass._mlir.passmanager import PassManager
from cutlass.base_dsl.common import DSLUserCodeError
from cutlass.base_dsl.compiler import BooleanCompileOption, CompileCallable, CompileOptions
from cutlass.base_dsl.dsl import BaseDSL, DSLSingletonMeta
from cutlass.base_dsl.typing import Int64
from cutlass.cute.atom import Atom, CopyOp, Trait
from cutlass.cute.nvgpu import CopyG2ROp, CopyR2GOp
from cutlass.cutlass_dsl import CuTeDSL

try:
    from cutlass.base_dsl.enums import Arch
except ImportError:
    # where older releases have it
    from cutlass.base_dsl.arch import Arch

from .diagnostics import CachePolicyError, PassFailure

__all__ = [
    "FlagOption",
    "Trace",
    "accept_cache_policies",
    "architectures",
    "code_generation",
    "compiler_passes",
    "install",
    "is_on",
    "ptxas_version",
    "refuse_ignored_fields",
    "respell_copy_atoms",
    "turn_on",
    "turned_on",
    "version",
]

#: Releases up to 4.6 have a fixed set of compile options; later ones have a registry for them.
HAS_OPTION_REGISTRY = hasattr(dsl_compiler, "register_option")


def version() -> str:
    """The release of nvidia-cutlass-dsl that is loaded, such as `4.8.1`."""
    # what is vendored, or packed into one file, has no metadata
    return getattr(cutlass, "__version__", None) or importlib.metadata.version("nvidia-cutlass-dsl")


class FlagOption(BooleanCompileOption):
    """A compile option of ours: `--<name>` in option strings, `<name>` in `CUTE_DSL_COMPILER_OPT`, `cls` in brackets.

    It never becomes part of the compiler's own pipeline string.
    """

    _option_name = None

    def __init__(self, val: bool = True) -> None:
        if not isinstance(val, bool):
            raise CachePolicyError(f"'{type(self).__name__}' expects True or False, but got {val!r}")
        super().__init__(val)

    def __init_subclass__(cls, name: str = "", **kwargs: Any) -> None:
        cls._cli_flag = name
        super().__init_subclass__(**kwargs)
        # what releases up to 4.6 call it
        cls.option_name = name  # pyright: ignore[reportAttributeAccessIssue]

    def serialize(self) -> str:
        return ""


@dataclass(frozen=True)
class Trace:
    """What the DSL has traced: the module in front of the compiler, not hashed yet.

    Attributes:
        module: the traced module.
        function: the name of the host function, or of the device function.
        gpu_arch: the target, such as `sm_90a`.
        enabled: the options of ours that are on.
    """

    module: ir.Module
    function: str
    gpu_arch: str
    enabled: frozenset[type[FlagOption]]


def install(
    options: list[type[FlagOption]],
    after_trace: Callable[[Trace], None],
    also: Callable[[ir.Module], bool] = lambda module: False,
) -> None:
    """Make the DSL know `options`, and call `after_trace` for each trace that has one on, or for which `also(module)`.

    `after_trace` may rewrite the module: it is hashed for the compile cache afterwards. Hooks of others run before.
    A `CachePolicyError` that it raises reaches the user as a mistake in the program. Installing again, as a reload of
    the package does, takes the place of the installation before.
    """
    getattr(BaseDSL, "_undo_cute_cache_policy", _undo).close()
    BaseDSL._undo_cute_cache_policy = _undo
    _register(options)
    _keep_flags_beside_option_string(options)
    _call_after_trace(options, after_trace, also)


#: Takes back what `_wrap` and `_register` did.
_undo = contextlib.ExitStack()


def _unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep `function` out of the DSL's messages: the innermost frame outside of the DSL is the user's line to them."""
    # frames of files in <> do not count
    function.__code__ = function.__code__.replace(co_filename=f"<{__name__}>")
    return function


@_unseen
def _as_user_error(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`; an error of ours becomes the DSL's own kind of error for a mistake in the user's program."""
    try:
        return function(*args)
    except CachePolicyError as failure:
        line = failure.line if isinstance(failure, PassFailure) else None
        where = {"filename": line.file, "lineno": line.number} if line else {}
        raise DSLUserCodeError(str(failure), **where) from None


def _wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name, None)
    if original is None:
        raise ImportError(
            f"cute-cache-policy expects a nvidia-cutlass-dsl with '{owner.__name__}.{name}' (4.6 to 4.8 have it), "
            f"but got {version()}"
        )
    setattr(owner, name, functools.wraps(original)(_unseen(make(original))))
    _undo.callback(setattr, owner, name, original)


def _register(options: list[type[FlagOption]]) -> None:
    if HAS_OPTION_REGISTRY:
        for option in options:
            dsl_compiler.register_option(option)
            _undo.callback(dsl_compiler._OPTION_REGISTRY.remove, option)
        dsl_compiler._build_string_api_tables.cache_clear()
    else:
        _wrap(CompileOptions, "__init__", functools.partial(_init_with, options))
        _wrap(dsl_compiler, "_parse_compile_options_from_str", functools.partial(_parse_with, options))

    # The environment variable is applied to the options of each compile. Those may be older than we are: `cute.compile`
    # keeps a set from its own import on, and so does every callable that the user made of it.
    def make(original: Any) -> Any:
        def apply_envar_settings(self: Any, envar: Any, *args: Any, **kwargs: Any) -> Any:
            _as_user_error(_check_variable, envar.compiler_opt, options)
            for option in options:
                self.options.setdefault(option, option(False))
            result = original(self, envar, *args, **kwargs)
            self.options.update({option: option(True) for option in _turned_on})
            return result

        return apply_envar_settings

    _wrap(CompileOptions, "apply_envar_settings", make)


def _check_variable(text: str, options: list[type[FlagOption]]) -> None:
    """Refuse a misspelt option of ours: the DSL hands what it does not know to its compiler, which cannot parse it."""
    known = [str(option._cli_flag) for option in options]
    for word in re.findall(r"(?:^|[\s,])-*([\w-]+)", text):
        if word not in known and (meant := difflib.get_close_matches(word, known, n=1, cutoff=0.75)):
            raise CachePolicyError(f"'CUTE_DSL_COMPILER_OPT' expects '{meant[0]}', but got '{word}'")


#: The options that are on in every compile.
_turned_on: set[type[FlagOption]] = set()


def turn_on(option: type[FlagOption]) -> None:
    """Let `option` be on in every compile of this process from now on, whatever the compile itself asks for."""
    _turned_on.add(option)


def turned_on() -> list[str]:
    """The names of the options that are on in every compile of this process."""
    return sorted(str(option._cli_flag) for option in _turned_on)


def _init_with(options: list[type[FlagOption]], original: Any) -> Any:
    def __init__(self: Any, chosen: Any = None) -> None:
        original(self)
        self.options.update({option: option(False) for option in options})
        if chosen is not None:
            self._update(chosen)

    return __init__


def _parse_with(options: list[type[FlagOption]], original: Any) -> Any:
    flags = {f"--{option._cli_flag}": option for option in options}

    def parse(text: str) -> CompileOptions:
        tokens = shlex.split(text)
        parsed = original(shlex.join(token for token in tokens if token not in flags))
        for token in flags.keys() & set(tokens):
            parsed.options[flags[token]].value = True
        return parsed

    return parse


def _keep_flags_beside_option_string(options: list[type[FlagOption]]) -> None:
    """`cute.compile[Flag](f, options="...")` forgets Flag: the string makes a new set of options. Put ours into it."""

    def make(original: Any) -> Any:
        def _compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            text = kwargs.get("options")
            chosen = (o for o in options if o in self._compile_options.options)
            flags = [f"--{o._cli_flag}" for o in chosen if self._compile_options.options[o].value]
            if isinstance(text, str) and text:
                kwargs["options"] = text = " ".join([text, *flags])
            try:
                return original(self, *args, **kwargs)
            except KeyError as unknown:
                # the DSL looks a target up in a table, and does not say what it has not found there
                wanted = " ".join([str(text), *flags, os.environ.get("CUTE_DSL_COMPILER_OPT", "")])
                if "sm_" not in str(unknown) or not any(str(o._cli_flag) in wanted for o in options):
                    raise
                known = ", ".join(architectures())
                raise DSLUserCodeError(f"expects one of {known} as the target, but got {unknown}") from None

        return _compile

    _wrap(CompileCallable, "_compile", make)


def _call_after_trace(
    options: list[type[FlagOption]], after_trace: Callable[[Trace], None], also: Callable[[ir.Module], bool]
) -> None:
    # Wrapped on the class rather than registered as a hook: one place for every DSL object (there are two), after the
    # hooks of other people, and an error keeps its type instead of becoming "Trace finalize hook failed".
    def make(original: Any) -> Any:
        def _run_trace_finalize_hooks(self: Any, module: ir.Module, function_name: str) -> None:
            original(self, module, function_name)
            chosen = self.compile_options.options
            enabled = frozenset(o for o in options if o in chosen and chosen[o].value)
            if (enabled or also(module)) and _lower_variables(self, module):
                arch = self.compile_options.gpu_arch or self.envar.arch
                _as_user_error(after_trace, Trace(module, function_name, arch, enabled))

        return _run_trace_finalize_hooks

    _wrap(BaseDSL, "_run_trace_finalize_hooks", make)


def _lower_variables(dsl: Any, module: ir.Module) -> bool:
    """Turn the variables of a `FrontendNext` trace into SSA values. Returns False if the compiler cannot.

    That frontend (4.7 and later) keeps every variable of a program that control flow may change in a memory slot, a
    `pyir.ref`, so that nothing says where an atom or an address comes from. The compiler lowers these in its first
    pass, which finds nothing left to do after us. Where it fails it is left to fail by itself, with its own message.
    """
    if not getattr(dsl.envar, "enable_pyir", False):
        return True
    with module.context:
        try:
            _variable_lowering().run(module.operation)
        except ir.MLIRError:
            return False
    return True


def _variable_lowering() -> PassManager:
    try:
        return PassManager.parse("builtin.module(pyir-prelower)")
    except ValueError:
        # its name in 4.7
        return PassManager.parse("builtin.module(convert-pyir-to-scf)")


def _target_while_on(option: type[FlagOption]) -> str | None:
    """The target of the compile that is being traced with `option` on; None if there is none.

    Both DSL objects get the options of a compile before its trace, and lose them afterwards.
    """
    for dsl in list(DSLSingletonMeta._instances.values()):
        chosen = dsl.compile_options.options.get(option)
        if chosen is not None and chosen.value:
            return dsl.compile_options.gpu_arch or dsl.envar.arch
    return None


def is_on(option: type[FlagOption]) -> bool:
    """Whether a compile with `option` on is being traced."""
    return _target_while_on(option) is not None


def respell_copy_atoms(option: type[FlagOption], respell: Callable[[Any, dict[str, Any], str], dict[str, Any]]) -> None:
    """While `option` is on, let `respell(element type, fields, target)` change what a G2R atom is made with."""

    def make(original: Any) -> Any:
        def _make_trait(self: Any, copy_internal_type: Any, *, loc: Any = None, ip: Any = None, **fields: Any) -> Any:
            if (target := _target_while_on(option)) is not None:
                fields = _as_user_error(respell, copy_internal_type, fields, target)
            return original(self, copy_internal_type, loc=loc, ip=ip, **fields)

        return _make_trait

    _wrap(CopyG2ROp, "_make_trait", make)


def refuse_ignored_fields(option: type[FlagOption], refuse: Callable[[str, dict[str, Any]], None]) -> None:
    """While `option` is on, call `refuse(name of the op, fields)` for what an op drops in `cute.make_copy_atom`.

    Most ops take any keyword and ignore it. Those that matter are the parameters of the ops that access global memory.
    Call this before `respell_copy_atoms`, which then sees the fields first.
    """
    defaults = {
        name: parameter.default
        for op in (CopyG2ROp, CopyR2GOp)
        for name, parameter in inspect.signature(op._make_trait).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("num_bits_per_copy", "loc", "ip")
    }
    defaults["l2_evict_priority"] = None

    def make(original: Any) -> Any:
        taken = inspect.signature(original).parameters
        dropped = {name: default for name, default in defaults.items() if name not in taken}

        def _make_trait(self: Any, *args: Any, **fields: Any) -> Any:
            trait = original(self, *args, **fields)
            lost = {n: fields[n] for n, default in dropped.items() if fields.get(n) not in (None, default)}
            if lost and is_on(option):
                _as_user_error(refuse, type(self).__name__, lost)
            return trait

        return _make_trait

    for op in _subclasses(CopyOp):
        if "_make_trait" in vars(op):
            _wrap(op, "_make_trait", make)


def _subclasses(class_: type) -> list[type]:
    return [c for child in class_.__subclasses__() for c in (child, *_subclasses(child))]


def accept_cache_policies(
    option: type[FlagOption],
    convert: Callable[[Any], Any],
    attach: Callable[..., ir.Value | None],
    record: Callable[..., ir.Value],
    recording: Callable[[], bool],
) -> None:
    """Act on every `cache_policy=` of `cute.copy` and of an atom's `with_`.

    Args:
        option: while it is on, `convert` makes an Int64 of the policy.
        attach: while `option` is on, called as `attach(atom, policy, loc, ip)` where the DSL refuses a policy; it
            returns the atom to use instead, or None if the DSL is right.
        record: while `recording()`, called as `record(atom, policy, loc, ip)` for a policy that the atom ignores; it
            returns the atom to use instead. Which atoms do is not listed: a policy that gets no use in the IR was
            ignored.
    """

    @_unseen
    def attached(unpack: Callable[..., ir.Value], **fields: Any) -> ir.Value:
        try:
            return unpack(**fields)
        except Exception:
            policy = fields["cache_policy"]
            if not isinstance(policy, Int64):
                raise
            bare = unpack(**{**fields, "cache_policy": None})
            atom = attach(bare, policy.ir_value(), fields.get("loc"), fields.get("ip"))
            if atom is None:
                raise
            return atom

    @_unseen
    def unpacked(unpack: Callable[..., ir.Value], fields: dict[str, Any]) -> ir.Value:
        policy = fields["cache_policy"]
        if _target_while_on(option) is not None:
            policy = _as_user_error(convert, policy)
            unpack = functools.partial(attached, unpack)
        if not recording() or not hasattr(policy, "ir_value"):
            return unpack(**{**fields, "cache_policy": policy})
        value = policy.ir_value()
        uses = sum(1 for _ in value.uses)
        atom = unpack(**{**fields, "cache_policy": Int64(value)})
        if sum(1 for _ in value.uses) > uses:
            return atom
        return record(atom, value, fields.get("loc"), fields.get("ip"))

    def make_unpack(original: Any) -> Any:
        def _unpack(self: Any, **fields: Any) -> ir.Value:
            if fields.get("cache_policy") is None:
                return original(self, **fields)
            return unpacked(functools.partial(original, self), fields)

        return _unpack

    def make_with(original: Any) -> Any:
        def with_(self: Any, **fields: Any) -> Any:
            if fields.get("cache_policy") is None:
                return original(self, **fields)
            return type(self)(unpacked(self.unpack, fields))

        return with_

    _wrap(Atom, "_unpack", make_unpack)
    _wrap(Trait, "with_", make_with)


@functools.cache
def ptxas_version() -> tuple[int, ...] | None:
    """The version of the ptxas inside the compiler, such as (13, 4, 59); None if it does not say (before CUDA 13).

    Later ones sign the binaries that they make.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(
            "module attributes {gpu.container_module} {"
            " gpu.module @m { llvm.func @f() attributes {gpu.kernel, nvvm.kernel} { llvm.return } } }"
        )
        pipeline = "nvvm-attach-target{chip=sm_90 features=+ptx86},gpu-module-to-binary{format=bin}"
        PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        signature = re.search(r"Cuda compilation tools, release [\d.]+, V(\d+)\.(\d+)\.(\d+)", str(module))
    return tuple(map(int, signature.groups())) if signature else None


def architectures() -> list[str]:
    """The targets that the DSL knows, such as `sm_90a`."""
    return [name for name in Arch.__members__ if name.startswith("sm_")]


def code_generation(gpu_arch: str, path: str) -> str:
    """The element of a pass pipeline that compiles a traced module as the DSL does.

    It writes `<path>.<gpu_arch>.ptx` and `<path>.<gpu_arch>.cubin`.
    """
    dsl = CuTeDSL._get_dsl()
    whole = dsl.preprocess_pipeline(dsl._get_pipeline(None), gpu_arch)
    element = whole.removeprefix("builtin.module(").removesuffix("})")
    return f"{element} dump-ptx-path={path} dump-cubin-path={path}}}"


def compiler_passes() -> list[str]:
    """The passes of the compiler's own pipeline that can be named in a pass pipeline; some of its passes cannot."""
    with ir.Context():
        pipeline = str(PassManager.parse("builtin.module(cute-to-nvvm)"))
        names = sorted(set(re.findall(r"(?<=[(,])[a-z][a-z0-9-]+(?=[{,)])", pipeline)))
        return [name for name in names if _is_registered(name)]


def _is_registered(name: str) -> bool:
    try:
        PassManager.parse(f"any({name})")
    except ValueError:
        return False
    return True
