"""Noise, masks, keys and coins are the same in every run of the suite, so that no test is a matter of luck.

Each test, and each fixture that several tests share, draws from a stream of its own: which tests run before it, or beside it,
changes nothing. `--fresh-draws` leaves tests the operating system's randomness. This is a plugin of pytest, and no test.
No claim of the package rests on such draws; processes that a test starts draw from the operating system all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pytest

from securetm.entropy import OperatingSystem, Seeded

OPTION = "--fresh-draws"
MARK = "own_draws"


@contextmanager
def drawn_from(seed: str) -> Iterator[None]:
    """What this process draws from the operating system is, meanwhile, one stream under that seed."""
    stream, before = Seeded(hashlib.sha256(seed.encode()).digest(), unsafe=True), OperatingSystem.bytes
    alone = Lock()  # fixtures may run parties in threads; who draws first is then a matter of luck, and an error is not

    def drawn(_: OperatingSystem, n: int) -> bytes:
        with alone:
            return stream.bytes(n)

    OperatingSystem.bytes = drawn  # type: ignore[method-assign]
    try:
        yield
    finally:
        OperatingSystem.bytes = before  # type: ignore[method-assign]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption(OPTION, action="store_true", help="noise, masks and keys are drawn anew, not the same in every run")


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", f"{MARK}: the operating system's own randomness is what is tested")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test draws from its own stream."""
    if item.config.getoption(OPTION) or item.get_closest_marker(MARK):
        return (yield)
    with drawn_from(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    """What several tests share is drawn alike, whichever of them asks for it first."""
    if fixturedef.scope == "function" or request.config.getoption(OPTION):
        return (yield)
    with drawn_from(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"):
        return (yield)
