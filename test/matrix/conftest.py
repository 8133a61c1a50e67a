"""The option `--full`, and the table of what the matrix compiled."""

from __future__ import annotations

import pytest

ROWS = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="compile every cell of the matrix for every target")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


@pytest.fixture
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to leave nothing out."""
    return bool(pytestconfig.getoption("--full", default=False))


@pytest.fixture
def table(pytestconfig: pytest.Config) -> list[str]:
    """Rows that are printed after all tests."""
    return pytestconfig.stash.setdefault(ROWS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if rows := config.stash.get(ROWS, []):
        terminalreporter.section("coverage matrix")
        for row in rows:
            terminalreporter.write_line(row)
