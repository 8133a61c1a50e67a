"""README.md tells the truth: its paths exist, CI runs its commands."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_ci_runs_every_command() -> None:
    commands = [line for block in code_blocks("sh") for line in block.splitlines()]
    assert commands
    ci = (ROOT / ".ci" / "run").read_text()
    assert [command for command in commands if command not in ci] == []


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
    for indent, name in re.findall(r"^( *)(\S+)", block, re.MULTILINE):
        folder = folder if indent else name
        paths.append(folder + name if indent else name)
    return paths
