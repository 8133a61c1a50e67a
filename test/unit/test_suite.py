"""The lit suites can fail: what FileCheck ignores without a word is an error here, and every message has its test.

No FileCheck objects to `CHECK :` or `CHEKC:`, and the one from PyPI does not object to a prefix without checks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TEST = Path(__file__).parents[1]
PASSES = TEST.parent / "passes"

FILES = [path for path in TEST.glob("*/*") if path.suffix in (".mlir", ".py") and path.parent.name != "__pycache__"]
LIT_TESTS = sorted(path for path in FILES if path.parent.name not in ("support", "unit", "gpu", "matrix"))
LIT_KEYWORDS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "TODO"}
KINDS = r"-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+)"


def problems(text: str) -> Iterator[str]:
    """What lets the lit test with this text pass unseen."""
    if not re.match(r"(//|#) RUN: ", text):
        yield "RUN is not line 1"
    # a line that ends in a backslash goes on
    commands = re.findall(r"RUN: (.*)", re.sub(r"\\\n\s*(?://|#) RUN:", "", text))
    used: set[str] = set()
    for command in commands:
        for check in re.findall(r"\bFileCheck\b([^|;&]*)", command):
            names = re.findall(r"--check-prefix(?:es)?[= ](\S+)", check)
            used |= set(",".join(names or ["CHECK"]).split(","))
    checks: set[str] = set()
    for line in text.splitlines():
        comment = re.match(r"\s*(?://|#)\s*(.*)", line)
        if comment is None:
            continue
        directive = re.match(rf"([A-Z][A-Z0-9_]*)(?:{KINDS})?:", comment[1])
        if directive is not None and directive[1] in used:
            checks |= {directive[1]} if "-NOT:" not in directive[0] else set()
        elif directive is not None and directive[1] not in LIT_KEYWORDS:
            yield f"no FileCheck reads {comment[1]!r}"
        elif directive is None and re.match(rf"({'|'.join(used or {'CHECK'})})\b", comment[1], re.IGNORECASE):
            yield f"not a directive: {comment[1]!r}"
    for prefix in sorted(used - checks):
        yield f"no line checks anything for {prefix}"


@pytest.mark.parametrize("path", LIT_TESTS, ids=lambda path: str(path.relative_to(TEST)))
def test_lit_test_can_fail(path: Path) -> None:
    assert list(problems(path.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "// A comment\n// RUN: tool %s | FileCheck %s\n// CHECK: x",
        "// RUN: tool %s | FileCheck %s\n",
        "// RUN: tool %s | FileCheck %s\n// CHECK-NOT: x",
        "// RUN: tool %s | FileCheck %s\n// CHECK: x\n// CHECK : y",
        "// RUN: tool %s | FileCheck %s\n// CHECK: x\n// CHECK-NXT: y",
        "// RUN: tool %s | FileCheck %s\n// CHECK: x\n// CHEKC: y",
        "// RUN: tool %s | FileCheck %s\n// CHECK: x\n// Check: y",
        "// RUN: tool %s | FileCheck %s\n// CHECK: x\n// CHECK y",
        "// RUN: tool %s | FileCheck %s --check-prefix=SM90\n// CHECK: x\n// SM90: x",
        "// RUN: tool %s | FileCheck %s --check-prefixes=CHECK,SM90\n// CHECK: x",
        "# RUN: tool %s | FileCheck %s \\\n# RUN:   --check-prefix=SM90\n# CHECK: x",
    ],
)
def test_lit_test_that_cannot_fail_is_found(text: str) -> None:
    assert list(problems(text))


def messages() -> Iterator[tuple[str, str]]:
    """Each message in `passes/`: where it stands, and a pattern for the texts it can become."""
    for path in sorted(PASSES.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("error", "warn"):
                message = node.args[1]
                parts = message.values if isinstance(message, ast.JoinedStr) else [message]
                pattern = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts]
                yield f"{path.name}:{node.lineno}", "".join(pattern)


@pytest.mark.parametrize("pattern", [pytest.param(pattern, id=where) for where, pattern in messages()])
def test_message_has_a_test(pattern: str) -> None:
    assert any(re.search(pattern, path.read_text()) for path in FILES)
