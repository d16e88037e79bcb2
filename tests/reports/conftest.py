"""One browser for all pages, and a page in it for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .browser import BROWSER, Tab, browser


@pytest.fixture(scope="session")
def pipes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    if BROWSER is None:
        pytest.skip("no browser is installed")
    with browser(tmp_path_factory.mktemp("browser")) as both:
        yield both


@pytest.fixture(scope="module")
def tab(pipes: tuple[int, int]) -> Tab:
    return Tab(*pipes)
