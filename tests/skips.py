"""Which tests may be left out where the suite must be whole: with `--no-unlisted-skips`, any other skip is a failure.

It is a plugin of pytest and tests nothing itself. `.ci/run` gives the option; elsewhere every skip is only reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

ALLOWED = (
    r"needs a GPU",
    r"the content is not kept|under this profile the words are public",  # there is nothing to try then
    r"this system does not measure the peak of a process's memory",
    r"root may read everything|root may write everywhere|this user cannot mount a file system",
    r"the research corpora are not beside this checkout",
    r"Flower is not here",
    r"no sshd is installed|the extra courier is not installed",
    r"Ray does not start here",
    r"is not installed, which lints a file of deploy/",
)
OPTION = "--no-unlisted-skips"


def unlisted(reasons: Iterable[str]) -> list[str]:
    """The reasons that are on no list."""
    return sorted({reason for reason in reasons if not any(re.search(allowed, reason) for allowed in ALLOWED)})


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption(OPTION, action="store_true", help="a skip is a failure unless its reason is listed in tests/skips.py")


def _refused(config: pytest.Config) -> list[str]:
    """Skips that fail this run. Workers of xdist leave that to the process that started them."""
    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or not config.getoption(OPTION):
        return []
    return unlisted(_reason(report) for report in terminal.stats.get("skipped", []))


def _reason(report: Any) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that left out more than it may has failed."""
    if exitstatus == pytest.ExitCode.OK and _refused(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says which skips failed the run."""
    for reason in _refused(config):
        terminalreporter.write_line(f"FAILED: a test was left out for a reason that is not listed in tests/skips.py: {reason}")
