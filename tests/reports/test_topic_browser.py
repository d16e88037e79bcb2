"""The page of topics in a real browser, by clicking, typing and dragging: what it shows, keeps, saves and asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from securetm.reports.topic_page.topic_page import write_topic_page

from .browser import BROWSER, Tab, browser
from .topics_shown import HOSTILE, shown

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser is installed")

_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_WORDS = "[...document.querySelectorAll('#words tbody th')].map(e => e.firstChild.textContent)"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "topics.html"
    write_topic_page(shown(), path)
    return path


def failures(tab: Tab) -> list[str]:
    """What the browser refused, and what the page's script failed at."""
    return tab.complaints() + [str(event) for event in tab.events if event.get("method") == "Runtime.exceptionThrown"]


@pytest.mark.parametrize("width", [320, 700, 1280])
def test_it_asks_for_nothing_but_itself_and_fits(tab: Tab, page: Path, width: int) -> None:
    tab.wide(width)
    tab.open(page)
    assert tab.requested() == [page.as_uri()]
    assert failures(tab) == []
    assert tab.asks(_WIDE) == 0
    assert tab.asks("document.querySelectorAll('#map [role=option]').length") == len(shown().topics)


def test_words_and_names_are_no_markup(tab: Tab, page: Path) -> None:
    tab.open(page)
    assert tab.asks("document.querySelectorAll('img, b:not(.warning b)').length") == 0
    assert tab.asks("window.hurt") is None
    assert HOSTILE in str(tab.asks("document.body.innerText"))


def test_the_slider_ranks_words_anew(tab: Tab, page: Path) -> None:
    tab.open(page)
    before = tab.asks(_WORDS)
    tab.asks("document.getElementById('relevance').value = 0")
    tab.asks("document.getElementById('relevance').dispatchEvent(new Event('input'))")
    after = tab.asks(_WORDS)
    assert len(before) == len(after)
    assert before != after
