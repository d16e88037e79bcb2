"""The status page in a real browser, served as to an operator, and the dashboard at terminals of several widths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from securetm.federation.coordinator.pages import LocalPages
from securetm.federation.coordinator.status import AWAY, FINISHED, WAITING, PartyStatus
from securetm.reports.federation import MOST_PARTIES, live_picture, picture, status_page, status_pages

from .browser import Tab
from .standings import facts

_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalPages(status_pages(facts), 0) as pages:
        yield f"http://127.0.0.1:{pages.port}/"


@pytest.mark.parametrize("width", [380, 1100])
def test_it_asks_for_nothing_but_itself_and_fits(tab: Tab, address: str, width: int) -> None:
    tab.wide(width)
    tab.open(address)
    assert {url for url in tab.requested() if not url.endswith("favicon.ico")} == {address}
    assert [said for said in tab.complaints() if "favicon" not in said] == []
    assert tab.asks("document.querySelectorAll('script, b').length") == 0  # a party's name is no markup
    assert tab.asks(_WIDE) == 0
    text = str(tab.asks("document.body.innerText"))
    for wanted in ("117 of 400", "4 of 5", "15:08", "4.062 of 8", "AnotherRoster", "<b>clinic</b> & sons", "○ away"):
        assert wanted in text


def test_the_same_facts_are_there_as_json(tab: Tab, address: str) -> None:
    tab.open(f"{address}status.json")
    assert json.loads(str(tab.asks("document.body.innerText"))) == json.loads(json.dumps(facts()))


def test_a_page_asks_for_itself_again_until_the_run_has_ended() -> None:
    assert 'http-equiv="refresh"' in status_page(facts())
    assert 'http-equiv="refresh"' not in status_page(facts(phase=FINISHED))
    assert "Waiting for parties: &lt;b&gt;clinic&lt;/b&gt; &amp; sons" in status_page(facts(phase=WAITING))


def test_of_many_parties_it_shows_those_that_are_away() -> None:
    many = {f"party {number:03d}": PartyStatus("answered") for number in range(100)} | {"zoo": PartyStatus(AWAY)}
    to = Console(width=100, file=StringIO(), record=True)
    to.print(picture(facts(parties=many), 100))
    shown = to.export_text()
    assert "zoo" in shown
    assert f"and {101 - MOST_PARTIES} more parties" in shown


def test_the_dashboard_leaves_its_last_picture(tmp_path: Path) -> None:
    stream = StringIO()
    with live_picture(Console(width=80, file=stream, force_terminal=True), facts):
        pass
    assert "117 of 400" in stream.getvalue()
