"""`cute-cache-policy autoload on|off|status`: let `CUTE_DSL_COMPILER_OPT` name our options in any process.

Without it the variable is fatal where nothing imports this package: the DSL hands options that it does not know to its
compiler. `on` puts a `.pth` file and the module it imports into the environment's site-packages. At the start of a
Python process that module does next to nothing; when `cutlass` is imported, it imports this package behind it, if the
variable asks for one of our options.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from .options import OPTIONS

__all__ = ["main", "switch"]

_NAME = "_cute_cache_policy_autoload"

#: Runs in every process of the environment: it imports nothing that Python has not imported by itself.
_HOOK = '''"""Imports cute_cache_policy behind cutlass where CUTE_DSL_COMPILER_OPT asks for it."""

import os
import sys

OPTIONS = {options!r}


class Finder:
    asks_others = False

    def find_spec(self, name, path=None, target=None):
        if name != "cutlass" or self.asks_others:
            return None
        words = os.environ.get("CUTE_DSL_COMPILER_OPT", "")
        if not any(option in words for option in OPTIONS):
            return None
        from importlib.util import find_spec

        self.asks_others = True
        try:
            spec = find_spec(name)
        finally:
            self.asks_others = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                try:
                    import cute_cache_policy
                except ModuleNotFoundError as problem:
                    if problem.name != "cute_cache_policy":
                        raise
                    print(
                        f"{{__file__}}: cute_cache_policy is not installed; delete this file and the .pth beside it",
                        file=sys.stderr,
                    )

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
'''


def switch(state: str, site: Path) -> bool:
    """Turn autoload `on` or `off` in a site-packages folder, or only look (`status`). Returns whether it is on."""
    hook, pth = site / f"{_NAME}.py", site / f"{_NAME}.pth"
    if state == "on":
        hook.write_text(_HOOK.format(options=sorted(str(option._cli_flag) for option in OPTIONS)))
        # last, and whole: other processes may be starting
        pth.write_text(f"import {_NAME}\n")
    elif state == "off":
        pth.unlink(missing_ok=True)
        hook.unlink(missing_ok=True)
        for compiled in site.glob(f"__pycache__/{_NAME}.*.pyc"):
            compiled.unlink(missing_ok=True)
    return pth.exists() and hook.exists()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="cute-cache-policy", description="Settings of the Python environment.")
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "autoload", help="let CUTE_DSL_COMPILER_OPT=honor-cache-policy work without an import"
    )
    command.add_argument("state", choices=["on", "off", "status"])
    args = parser.parse_args(arguments)
    site = Path(sysconfig.get_path("purelib"))
    try:
        on = switch(args.state, site)
    except OSError as problem:
        print(f"cute-cache-policy: error: expects a writable {site}, but got: {problem}", file=sys.stderr)
        return 1
    print(f"autoload is {'on' if on else 'off'} in {site}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
