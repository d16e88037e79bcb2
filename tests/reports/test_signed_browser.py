"""The page to sign in a real browser: two screens, nothing beside the screen, and nothing asked for."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from securetm.reports.pages import in_html
from securetm.reports.statement.annex import annex, bind

from .browser import Tab
from .test_signed_report import CLAIM, IDLE, LEAK, changed, own_evidence, report
from .test_statement import DIGEST, sheet_of, stated

__all__ = ["own_evidence"]  # no evidence but that which a test puts there
SCREEN = (1280, 1080)
_HEIGHT = "document.documentElement.scrollHeight"
_BESIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_FOLDED = "JSON.stringify([...document.querySelectorAll('details')].map(e => e.querySelector('summary').innerText))"


def shown(tab: Tab, folder: Path, profile: str, width: int, height: int = 900) -> None:
    page = folder / "report.html"
    of = report(profile, *(changed(one, profile=profile) for one in (CLAIM, LEAK, IDLE)))
    page.write_text(in_html(annex(of)), "utf-8")
    tab.wide(width, height)
    tab.open(page)


@pytest.mark.parametrize("profile", ["masked", "dp-distributed"])
def test_it_is_two_screens_and_only_what_is_beside_the_point_is_folded(tab: Tab, tmp_path: Path, profile: str) -> None:
    shown(tab, tmp_path, profile, *SCREEN)
    assert float(str(tab.asks(_HEIGHT))) <= 2 * SCREEN[1]
    assert tab.requested() == [(tmp_path / "report.html").as_uri()]
    assert tab.complaints() == []
    folded = json.loads(str(tab.asks(_FOLDED)))
    assert "Fingerprints" in folded
    assert not {"Recommendation", "Five questions", "What was spent", "What regulators ask", "Signature"} & set(folded)


@pytest.mark.parametrize("profile", ["dp-distributed", "iftm"])
def test_the_sheet_prints_on_one_sheet_and_every_sheet_of_its_annex_names_the_statement(
    tab: Tab, tmp_path: Path, profile: str
) -> None:
    from pypdf import PdfReader

    sheet, second = tmp_path / "sheet.html", tmp_path / "annex.html"
    sheet.write_text(in_html(sheet_of(stated(profile), page_annex_html=DIGEST)), "utf-8")
    second.write_text(in_html(bind(annex(report(profile, changed(LEAK, profile=profile))), DIGEST, "2026-11-24")), "utf-8")
    tab.open(sheet)
    assert len(PdfReader(io.BytesIO(tab.pdf())).pages) == 1
    assert tab.complaints() == []
    tab.open(second)
    pages = PdfReader(io.BytesIO(tab.pdf())).pages
    assert len(pages) > 1
    assert all("Annex to the statement 1212 1212 1212 1212" in page.extract_text() for page in pages)


@pytest.mark.parametrize("width", [320, 700])
def test_nothing_sticks_out_of_a_narrow_screen(tab: Tab, tmp_path: Path, width: int) -> None:
    shown(tab, tmp_path, "dp-distributed", width)
    tab.asks("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert tab.asks(_BESIDE) == 0
