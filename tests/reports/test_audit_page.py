"""The audit's page and tables: all of the findings, nothing from anywhere else, nothing that only colour would tell."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from securetm.leakage.attack import Counted, Example
from securetm.leakage.findings import NOT_REFUTED, NOT_TESTED, REFUTED, Audit, Finding, measured
from securetm.reports.audit_page import audit_page, write_audit
from securetm.reports.audit_tables import show_audit
from securetm.reports.findings import CAUTION, headline, record, share

from .test_budget_page import Seen

SPACE = "\N{NO-BREAK SPACE}"
MEASURE, UNIT = "documents recovered exactly", "document"
CHANCE = measured(MEASURE, UNIT, Counted(0, 300), 0.95)


def finding(**changes: object) -> Finding:
    """A finding as an audit would give it."""
    plain = Finding(
        attack="gradient_inversion",
        title="Documents from <one> gradient",
        adversary="coordinator",
        threat_model="curious_coordinator",
        profile="open",
        model="prodlda",
        claim="sees only sums",
        measured=measured(MEASURE, UNIT, Counted(292, 300), 0.95),
        refuted_from=0.05,
        confidence=0.95,
        verdict=REFUTED,
        why="the interval begins at 0.948",
        baseline=True,
        claimed=False,
        accepted="",
        seconds=3.2,
        chance=CHANCE,
        beside=(measured("named words that occur", "word", Counted(10, 40), 0.95),),
        examples=(Example("river ×2, <boat>", "river ×2, <boat>", True), Example("court", "", False)),
        setting="5 parties",
        effort="4 rounds",
        citation="Somebody 2020",
        cost="nothing",
        given="the words",
        sees=("request", "answer"),
        limits=("the first", "the second"),
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


CLAIM = finding(
    profile="masked", measured=CHANCE, verdict=NOT_REFUTED, why="reached 0", baseline=False, claimed=True, examples=()
)
LEAK = finding(profile="masked", baseline=False, accepted="the total may be known", claim="the total is private")
IDLE = finding(profile="masked", measured=measured(MEASURE, UNIT, Counted(0, 0), 0.95), verdict=NOT_TESTED, baseline=False)
AUDIT = Audit(
    "quick", "What <is> learned?", "demonstration", (finding(), CLAIM, LEAK, IDLE), ("membership & more",), 41.0, "0.1.0",
    ("securetm audit quick",),
)  # fmt: skip


def said(audit: Audit, examples: int = 2) -> str:
    return " ".join(" ".join(Seen(audit_page(audit, examples)).text).split())


def test_the_page_holds_all_of_the_audit() -> None:
    seen, text = Seen(audit_page(AUDIT, 2)), said(AUDIT)
    assert seen.open == []
    for wanted in (
        "What <is> learned?", "1. Documents from <one> gradient, profile open", "4. Documents", "97.3 % (94.8 % to 98.8 %)",
        "292 of 300", "not refuted", "not tested", "the total may be known", "river ×2, <boat>", "membership & more",
        "securetm audit quick", "Somebody 2020", "request, answer", "the first; the second", "by chance", CAUTION,
        "baseline: nothing protects it", "claimed by the profile", "25 % (12.7 % to 41.2 %), 10 of 40",
    ):  # fmt: skip
        assert wanted in text.replace(SPACE, " "), wanted
    assert "safe:" not in text


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = audit_page(AUDIT, 2)
    seen = Seen(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "embed", "a"}
    assert not [name for _, attrs in seen.tags for name in attrs if name in ("src", "href", "srcset") or name.startswith("on")]
    assert "url(" not in text
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}


def test_the_page_warns_where_it_quotes_and_quotes_only_where_wanted() -> None:
    assert "quotes what was recovered" in said(AUDIT, 1)
    assert "court" not in said(AUDIT, 1)
    silent = said(AUDIT, 0)
    assert "river" not in silent
    assert "quotes what was recovered" not in silent


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_all_within_its_width(width: int) -> None:
    out = StringIO()
    show_audit(AUDIT, 2, Console(file=out, width=width, highlight=False))
    assert max(map(len, out.getvalue().splitlines())) <= width
    text = " ".join(out.getvalue().replace("│", " ").replace(SPACE, " ").split())
    for wanted in ("What <is> learned?", "2. not refuted: reached 0.", "membership & more", "4 findings in 41 s.", "<boat>"):
        assert wanted in text
    assert "no evidence of safety" in text


def test_the_headline_never_says_more_than_was_tried() -> None:
    only = dataclasses.replace
    assert headline(only(AUDIT, findings=(finding(), CLAIM))) == (
        "One claim was tried and not refuted by these attacks at this effort."
    )
    assert headline(only(AUDIT, findings=(finding(),))).startswith("No claim of any profile was tried")
    idle = only(IDLE, claimed=True)
    assert headline(only(AUDIT, findings=(idle,))) == "Nothing was learned about any claim: see why below."
    assert "(1 of them not tested)" in headline(only(AUDIT, findings=(CLAIM, idle)))
    broken = only(CLAIM, verdict=REFUTED)
    assert headline(only(AUDIT, findings=(broken,))).startswith("Refuted: “sees only sums” of profile masked")
    assert "promises that it does not: documents from <one> gradient (profile masked)" in headline(AUDIT)


def test_the_record_has_every_field_of_the_contract_on_one_level() -> None:
    (first, *_) = record(AUDIT, 1)["findings"]
    assert first["value"] == pytest.approx(292 / 300)
    assert (first["low"], first["high"]) == (pytest.approx(0.948, abs=1e-3), pytest.approx(0.988, abs=1e-3))
    assert first["ceiling"] == pytest.approx(0.025 ** (1 / 300))
    assert (first["unit"], first["measure"], first["seconds"]) == (UNIT, MEASURE, 3.2)
    assert len(first["examples"]) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "100"), (0.9996, "over 99.9"), (0.0004, "under 0.1"), (0.973, "97.3"), (0.05, "5")],
)
def test_shares_are_never_rounded_to_all_or_nothing(value: float, text: str) -> None:
    assert share(value) == f"{text}{SPACE}%"


def test_a_real_browser_shows_the_page(tmp_path: Path) -> None:
    """Headless Chromium draws it, keeps all of its parts, and prints it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser is installed")
    page, shot = tmp_path / "audit.html", tmp_path / "audit.png"
    write_audit(AUDIT, page, 2)
    common = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    drawn = subprocess.run(
        [*common, f"--screenshot={shot}", "--window-size=900,2000", page.as_uri()], capture_output=True, timeout=120, check=True
    )
    assert shot.stat().st_size > 20_000, drawn.stderr
    dumped = subprocess.run([*common, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "Results beside chance" in dumped.stdout
    printed = tmp_path / "audit.pdf"
    subprocess.run([*common, f"--print-to-pdf={printed}", page.as_uri()], capture_output=True, timeout=120, check=True)
    assert printed.read_bytes().startswith(b"%PDF")
