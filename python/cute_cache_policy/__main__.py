"""`python -m cute_cache_policy [--verify] program.py args...`: run a program with every copy keeping its cache policy.

Every compile in the process has the options on, however deep in a library. For processes that the program starts, see
`cute-cache-policy autoload`.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Sequence

from . import HonorCachePolicy, VerifyCachePolicy, _dsl

__all__ = ["main"]

_RUNPY = runpy.run_path.__code__.co_filename


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m cute_cache_policy", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--verify", action="store_true", help="a copy that loses its policy all the same is an error")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args(arguments)
    _dsl.turn_on(HonorCachePolicy)
    if args.verify:
        _dsl.turn_on(VerifyCachePolicy)
    sys.argv = [args.program, *args.arguments]
    try:
        if args.module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(args.program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(args.program)))
            runpy.run_path(args.program, run_name="__main__")
    except (ImportError, OSError) as problem:
        if any(frame.filename not in (__file__, _RUNPY) for frame in traceback.extract_tb(problem.__traceback__)):
            # the program's own: it was found, and has begun
            raise
        # the exit statuses of Python itself
        parser.exit(
            2 if isinstance(problem, OSError) else 1,
            f"{parser.prog}: error: expects a program to run, but got: {problem}\n",
        )


if __name__ == "__main__":
    main()
