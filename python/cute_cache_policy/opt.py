"""`cute-cache-policy-opt`: an `mlir-opt` for the IR of CuTe DSL.

Reads IR (what `CUTE_DSL_KEEP=ir-debug` dumps), runs passes, prints IR or device code. Every flag that is not one of
the driver's own is a pass, ours or the compiler's, and passes run in the order of their flags:

    cute-cache-policy-opt kernel.mlir -convert-invariant-copy-to-nvvm=gpu-arch=sm_90a -cse
    cute-cache-policy-opt kernel.mlir --pass-pipeline='builtin.module(cute-desugar,gpu.module(cse))'
    cute-cache-policy-opt kernel.mlir -convert-invariant-copy-to-nvvm --gpu-arch=sm_100a --emit=sass
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from cutlass._mlir import ir

from . import _dsl, codegen, pipeline
from .diagnostics import CachePolicyError, CachePolicyWarning, PassFailure
from .pass_manager import Pass, run
from .passes import PASSES
from .verify_diagnostics import Diagnostic, mismatches

__all__ = ["main"]

_SEPARATOR = "// -----"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the driver; returns the exit status."""
    try:
        args = _parse(sys.argv[1:] if arguments is None else arguments)
        if args.list_passes:
            print(_list_passes(), end="")
            return 0
        passes = pipeline.parse(args.pass_pipeline, args.gpu_arch)
        sections = list(_sections(_read(args.input), args.split_input_file))
        outputs = [_process(section, passes, args) for section in sections]
        if done := [output for output in outputs if output is not None]:
            _write(f"{_SEPARATOR}\n".encode().join(done), args.output)
    except CachePolicyError as problem:
        print(f"cute-cache-policy-opt: error: {problem}", file=sys.stderr)
        return 1
    return int(None in outputs)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CachePolicyError(message)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The driver's own options, with every other flag turned into `pass_pipeline`."""
    parser = _Parser("cute-cache-policy-opt", description=__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("input", nargs="?", default="-", help="a file of IR, or - for standard input (the default)")
    parser.add_argument("-o", "--output", default="-", help="the file to write, - for standard output (the default)")
    parser.add_argument("--pass-pipeline", metavar="TEXT", help="the passes as text, 'builtin.module(...)'")
    parser.add_argument("--list-passes", action="store_true", help="list the passes and their options, and exit")
    parser.add_argument("--emit", choices=codegen.FORMATS, default="mlir", help="what to print (default: %(default)s)")
    parser.add_argument(
        "--gpu-arch",
        choices=_dsl.architectures(),
        metavar="ARCH",
        default=os.environ.get("CUTE_DSL_ARCH", "sm_80"),
        help="the target of --emit and of passes that do not name one (default: %(default)s)",
    )
    parser.add_argument(
        "--split-input-file", action="store_true", help=f"process each part between '{_SEPARATOR}' alone"
    )
    parser.add_argument("--verify-diagnostics", action="store_true", help="check 'expected-error {{text}}' comments")
    parser.add_argument("--mlir-print-op-generic", action="store_true", help="print ops in their generic form")
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="print locations")
    # as in mlir-opt, one dash is as good as two
    args, rest = parser.parse_known_args([re.sub(r"^-(?=\w[\w-])", "--", argument) for argument in arguments])
    flags = [flag.lstrip("-").partition("=") for flag in rest if flag.startswith("-")]
    if len(flags) < len(rest):
        parser.error(f"expects one input, but got {next(f for f in rest if not f.startswith('-'))!r} as well")
    if flags and args.pass_pipeline is not None:
        parser.error("expects passes as flags or as --pass-pipeline, but got both")
    if args.pass_pipeline is None:
        elements = (f"{name}{{{options}}}" if equals else name for name, equals, options in flags)
        args.pass_pipeline = f"builtin.module({','.join(elements)})"
    return args


def _list_passes() -> str:
    lines = ["Passes of this package, and their options:"]
    for name, pass_ in sorted(PASSES.items()):
        lines += [f"  --{name}", f"      {(pass_.__doc__ or '').splitlines()[0]}"]
        lines += [f"      {option} (default: {field.default})" for option, field in pass_.options().items()]
    lines += ["Passes of the compiler's own pipeline (other passes that are registered with it work as well):"]
    lines += [f"  --{name}" for name in _dsl.compiler_passes()]
    return "\n".join(lines) + "\n"


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
        raise CachePolicyError(f"cannot read '{name}': {reason}") from None


def _write(data: bytes, name: str) -> None:
    try:
        if name == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            Path(name).write_bytes(data)
    except BrokenPipeError:
        # whoever read our output, such as `head`, has seen enough; Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        raise CachePolicyError(f"cannot write '{name}': {problem.strerror}") from None


def _sections(text: str, split: bool) -> Iterator[str]:
    """The parts of the input; empty lines in front keep the line numbers of the whole."""
    lines = text.split("\n")
    ends = [n for n, line in enumerate(lines) if split and line.startswith(_SEPARATOR)] + [len(lines)]
    for start, end in zip([0, *(n + 1 for n in ends)], ends):
        yield "\n" * start + "\n".join(lines[start:end])


def _process(section: str, passes: list[Pass | str], args: argparse.Namespace) -> bytes | None:
    """What to print for one part of the input; None if it failed, after the reasons went to standard error."""
    output, diagnostics = _transform(section, passes, args)
    failed = output is None
    if args.verify_diagnostics:
        diagnostics = mismatches(section, diagnostics)
        failed, output = bool(diagnostics), output or b""
    for diagnostic in diagnostics:
        print(diagnostic.text("<stdin>" if args.input == "-" else args.input), file=sys.stderr)
    return None if failed else output


def _transform(
    section: str, passes: list[Pass | str], args: argparse.Namespace
) -> tuple[bytes | None, list[Diagnostic]]:
    """Parse, run and print one part; the output is None if that failed."""
    output: bytes | None = None
    found: list[Diagnostic] = []
    with ir.Context() as context, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", CachePolicyWarning)
        # errors come with the exception; this gets the warnings and remarks
        handler = context.attach_diagnostic_handler(lambda one: found.extend(Diagnostic.collect([one])) or True)
        try:
            module = ir.Module.parse(section)
            run(module, passes)
            if args.emit == "mlir":
                flags = {
                    "enable_debug_info": args.mlir_print_debuginfo,
                    "print_generic_op_form": args.mlir_print_op_generic,
                }
                output = f"{module.operation.get_asm(**flags).rstrip()}\n".encode()
            else:
                output = codegen.emit(module, args.emit, args.gpu_arch)
        except (ir.MLIRError, PassFailure) as failure:
            cause = failure if isinstance(failure, ir.MLIRError) else failure.__context__
            found += Diagnostic.collect(getattr(cause, "error_diagnostics", []))
        finally:
            handler.detach()
    found += [Diagnostic.of_warning(w) for w in warned if issubclass(w.category, CachePolicyWarning)]
    return output, found


if __name__ == "__main__":
    sys.exit(main())
