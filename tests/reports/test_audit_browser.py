"""The audit's page in a real browser: it asks for nothing, fits a narrow screen, and unfolds what matters on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.reports.audits.report import write_audit

from .audits import large
from .browser import Tab

_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_HEIGHTS = "JSON.stringify([...document.querySelectorAll('details')].map(e => e.getBoundingClientRect().height))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "audit.html"
    write_audit(large(16), path, 2)
    return path


def test_it_asks_for_nothing_but_itself_and_the_browser_has_nothing_to_complain_of(tab: Tab, page: Path) -> None:
    tab.wide(1100)
    tab.open(page)
    assert tab.requested() == [page.as_uri()]
    assert tab.complaints() == []
    assert tab.asks("document.compatMode") == "CSS1Compat"
    assert tab.asks("document.querySelectorAll('script').length") == 0


def test_what_is_claimed_or_leaked_is_unfolded_on_paper(tab: Tab, page: Path) -> None:
    tab.wide(793)
    tab.open(page)
    folded = json.loads(str(tab.asks(_HEIGHTS)))
    tab.medium("print")
    printed = json.loads(str(tab.asks(_HEIGHTS)))
    spare = json.loads(str(tab.asks("JSON.stringify([...document.querySelectorAll('details')].map(e => e.className))")))
    tab.medium("")  # as the browser itself would
    assert len(folded) == 16
    assert max(folded) < 100
    assert min(height for height, kind in zip(printed, spare, strict=True) if not kind) > 400
    assert max(height for height, kind in zip(printed, spare, strict=True) if kind == "spare") < 100


def test_a_screen_reader_finds_the_landmarks_and_the_tables(tab: Tab, page: Path) -> None:
    """On a narrow screen, where rows are blocks: their roles keep them tables."""
    tab.wide(400)
    tab.open(page)
    wanted = ("main", "navigation", "banner", "contentinfo", "table", "row", "rowheader", "cell", "heading")
    nodes = tab.accessible(*wanted)
    roles = [node["role"]["value"] for node in nodes]
    for role in wanted:
        assert role in roles, role
    pictures = [node for node in nodes if node.get("role", {}).get("value") in ("img", "image") and node.get("name")]
    assert any("by chance" in node["name"]["value"] for node in pictures)
