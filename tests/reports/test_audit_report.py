"""An audit in the terminal, on its page and as a text: all of the findings, and nothing that only colour would tell."""

from __future__ import annotations

import math
import re
from html import unescape
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from securetm.auditing.record import Audit, Curve, Example, Finding
from securetm.figures import Figure
from securetm.foreign_text import markdown_text
from securetm.reports.audits.report import (
    audit_page,
    bars,
    figures,
    findings_table,
    result_of,
    show_audit,
    summary,
)
from securetm.reports.audits.wording import share
from securetm.reports.document import Bars, Table, lines_of, plain

from .audits import (
    AUDIT,
    CLAIM,
    EMPIRICAL,
    FULL,
    MEMBERSHIP,
    PROTECTED,
    UNPROTECTED,
    changed,
    finding,
    large,
)
from .test_budget_page import Seen

SPACE = "\N{NO-BREAK SPACE}"


def said(audit: Audit, examples: int = 2) -> str:
    return " ".join(" ".join(Seen(audit_page(audit, examples)).text).split()).replace(SPACE, " ")


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = audit_page(FULL, 2)
    seen = Seen(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert not [name for _, attrs in seen.tags for name in attrs if name in ("src", "srcset") or name.startswith("on")]
    links = [str(attrs["href"]) for tag, attrs in seen.tags if "href" in attrs and tag == "a"]
    places = {attrs["id"] for _, attrs in seen.tags if "id" in attrs}
    assert links
    assert all(link.startswith("#") and link[1:] in places for link in links)
    assert "url(" not in text
    assert re.findall(r"https?://[^\s\"']+", text) == []


def test_words_that_were_missed_and_words_that_were_invented_are_marked() -> None:
    text = audit_page(FULL, 2)
    assert '<u class="missed">□</u>' in text
    assert "ferry" not in text  # a word that did not leak is not shown
    assert '<s class="wrong">harbour</s>' in text
    assert "2 of 4 words" in text
    cut = Example("a ×9, b … and 3 words more", "a ×9, c … and 2 words more", False)
    assert "of 2 words" not in audit_page(replace(AUDIT, findings=(finding(examples=(cut,)),)), 2)


def test_a_finding_has_a_figure_for_each_kind_of_curve_with_its_numbers() -> None:
    _, drawn, rates = figures(PROTECTED)
    assert isinstance(drawn, Figure)
    assert isinstance(rates, Table)
    assert drawn.allowed is not None
    assert [row[0] for row in rates.rows] == [f"{'AB'[n]}: {line.name}" for n, line in enumerate(drawn.curves)]
    assert "likelihood ratio, 40 shadow models" in str(rates.rows)
    for other in (MEMBERSHIP, changed(PROTECTED, epsilon_unit="word")):  # no epsilon is claimed, or of something else
        assert [one.allowed for one in figures(other) if isinstance(one, Figure)] == [None]
    assert [one.diagonal for one in figures(EMPIRICAL) if isinstance(one, Figure)] == ["as claimed"]
    assert not list(figures(CLAIM))


def test_the_rates_beside_a_curve_are_read_off_without_guessing_between_thresholds() -> None:
    curve = Curve("roc", "a", (0.0, 0.005, 0.05, 1.0), (0.1, 0.2, 0.6, 1.0))
    _, _, rates = figures(finding(curves=(curve,)))
    assert isinstance(rates, Table)
    assert rates.rows == (("A: a", f"10{SPACE}%", f"20{SPACE}%", f"60{SPACE}%"),)
    single = finding(curves=(Curve("epsilon", "shown", (4.0,), (math.inf,)),))
    assert "no bound" in said(replace(AUDIT, findings=(single,)))


def axes(*findings: Finding) -> list[Bars]:
    return list(bars([result_of(one, ("x",)) for one in findings]))


def test_an_epsilon_has_an_axis_of_its_own_and_an_interval_without_end_goes_beyond_it() -> None:
    _, epsilons = axes(finding(), EMPIRICAL, UNPROTECTED)
    assert [float(text) for _, text in epsilons.marks] == [0, 2, 4, 6, 8]
    assert [bar.beyond for bar in epsilons.bars] == [False, True]
    assert epsilons.bars[0].said == "1.42 (0.62 to 2.31), by chance 0"
    assert "M2 11l6 5l-6 5" in audit_page(replace(AUDIT, findings=(UNPROTECTED,)), 0)  # an arrow


@pytest.mark.slow
def test_many_findings_make_a_page_of_moderate_size_with_all_folded() -> None:
    text = audit_page(large(20), 6)
    assert len(text.encode()) < 600_000
    tags = Seen(text).tags
    folded = [attrs for tag, attrs in tags if tag == "details"]
    assert len(folded) == 20
    assert not any("open" in attrs for attrs in folded)
    assert all("open" in attrs for tag, attrs in Seen(audit_page(FULL, 2)).tags if tag == "details")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "100"),
        (0.9996, "over 99.9"),
        (0.0004, "0.04"),
        (0.00956, "0.96"),
        (4e-7, "under 0.0001"),
        (0.973, "97.3"),
        (0.05, "5"),
    ],
)
def test_shares_are_never_rounded_to_all_or_nothing(value: float, text: str) -> None:
    assert share(value) == f"{text}{SPACE}%"


# ---- the terminal ---------------------------------------------------------------------------------------------------


def on_screen(audit: Audit, width: int, examples: int = 2) -> str:
    out = StringIO()
    show_audit(audit, examples, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def flat(text: str) -> str:
    return " ".join(text.replace(SPACE, " ").split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("audit", [AUDIT, large(60)], ids=["small", "large"])
def test_the_terminal_shows_all_within_its_width(width: int, audit: Audit) -> None:
    text = on_screen(audit, width)
    assert max(map(len, text.splitlines())) <= width
    for wanted in ("What <is> learned?", "2. held: reached 0.", f"{len(audit.findings)} findings in 41 s.", "<boat>"):
        assert wanted in flat(text) or (wanted == "<boat>" and audit is not AUDIT)
    assert "no evidence of safety" in flat(text)


def test_terminal_page_and_summary_have_the_same_columns_and_lines() -> None:
    """One definition drives all three: a line of a finding that one of them shows is in the others."""
    screen, page, text = flat(on_screen(FULL, 300)), unescape(audit_page(FULL, 2)), summary(FULL, 2)
    table = findings_table(enumerate(FULL.findings, start=1))
    for name in table.columns:
        assert name in screen
        assert f'scope="col">{name}</th>' in page
        assert name in text
    lines = [plain(line) for row in table.rows for cell in row[1:] for line in lines_of(cell)]
    assert len(lines) > 60
    for line in lines:
        assert flat(line).replace(" %", "%") in screen.replace(" %", "%")
        assert line in page
        assert markdown_text(line) in text


# ---- the text -------------------------------------------------------------------------------------------------------


def test_documents_are_quoted_only_where_wanted_and_then_with_a_warning() -> None:
    for form in (said, summary, lambda audit, examples: on_screen(audit, 80, examples)):
        assert "river" in form(AUDIT, 1)
        assert "court" not in form(AUDIT, 1)
        assert "river" not in form(AUDIT, 0)
    for form in (said, summary):
        assert "keep it as you keep these" in form(AUDIT, 1)
        assert "keep it as you keep these" not in form(AUDIT, 0)
