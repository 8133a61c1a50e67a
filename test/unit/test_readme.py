"""README.md tells the truth: its paths exist, CI runs its commands."""

import csv
import re
import subprocess
import sys
from pathlib import Path

from cute_cache_policy.passes import PASSES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_is_short() -> None:
    assert len(README.splitlines()) <= 175


def test_ci_runs_every_command() -> None:
    commands = [line for block in code_blocks("sh") for line in block.splitlines()]
    assert commands
    ci = (ROOT / ".ci" / "run").read_text()
    assert [command for command in commands if command not in ci] == []


def test_example_prints_what_it_says() -> None:
    (shown,) = code_blocks("ptx")
    done = subprocess.run([sys.executable, ROOT / "examples/issue_3726.py"], capture_output=True, text=True, check=True)
    # the last line is about the GPU
    assert done.stdout.splitlines()[:-1] == shown.splitlines()


def test_figures_are_those_of_the_benchmark() -> None:
    with (ROOT / "bench/results/results.csv").open() as file:
        measured = {
            (f"{row['workload']}, {row['shape']}", row["competitor"]): f"{float(row['ms']):.3f}"
            for row in csv.DictReader(file)
        }
    (table,) = re.findall(r"^\| H200, milliseconds.*(?:\n\|.*)+", README, re.MULTILINE)
    (_, *competitors), _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
    assert rows
    for workload, *figures in rows:
        assert figures == [measured[workload, competitor] for competitor in competitors]


def test_every_path_exists() -> None:
    # in the text, a path has a slash or an ending; `<...>` and `*` stand for a part of one
    words = re.findall(r"`([\w.*<>/-]+)`", README) + re.findall(r"\]\(([^):]+)\)", README)
    paths = {word for word in words if re.search(r"^[^<*]*/|\.(md|py|toml|txt)$", word)} | set(tree())
    missing = [path for path in paths if not any(ROOT.glob(re.sub("<.*?>", "*", path)))]
    assert missing == []


def tree() -> list[str]:
    """The paths in the tree: a file is indented under its folder."""
    (block,) = code_blocks("text")
    paths, folder = [], ""
    for line in block.splitlines():
        name, *others = re.findall(r"[\w.-]+(?:/|\.py\b)(?:[\w.-]+/)*", line)
        folder = folder if line.startswith(" ") else name
        paths += [folder + each if line.startswith(" ") else each for each in (name, *others)]
    return paths


def test_tree_has_every_module() -> None:
    modules = {f"python/cute_cache_policy/{path.name}" for path in (ROOT / "python/cute_cache_policy").glob("*.py")}
    assert modules - set(tree()) == {"python/cute_cache_policy/__init__.py"}


def test_table_has_every_pass() -> None:
    assert re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE) == list(PASSES)


def test_table_has_every_suite() -> None:
    folders = {f"test/{path.parent.name}/" for path in (ROOT / "test").glob("*/test_*.py")}
    assert folders <= set(re.findall(r"^\| `([\w/-]+)` \|", README, re.MULTILINE))
