"""The audit in the terminal: all of it, within its width, however hostile the words."""

from __future__ import annotations

from html import unescape
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from securetm.auditing.record import Audit, Example
from securetm.foreign_text import markdown_text
from securetm.reports.audit_report import audit_page, findings_table, show_audit, summary
from securetm.reports.document import lines_of, plain

from .audits import AUDIT, FULL, finding, large

SPACE = "\N{NO-BREAK SPACE}"


def shown(audit: Audit, width: int, examples: int = 2) -> str:
    out = StringIO()
    show_audit(audit, examples, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def flat(text: str) -> str:
    return " ".join(text.replace(SPACE, " ").split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("audit", [AUDIT, FULL, large(60)], ids=["small", "full", "large"])
def test_the_terminal_shows_all_within_its_width(width: int, audit: Audit) -> None:
    text = shown(audit, width)
    assert max(map(len, text.splitlines())) <= width
    for wanted in ("What <is> learned?", "2. held: reached 0.", f"{len(audit.findings)} findings in 41 s.", "<boat>"):
        assert wanted in flat(text) or (wanted == "<boat>" and audit is not AUDIT)
    assert "no evidence of safety" in flat(text)


def test_verdicts_stay_in_one_piece() -> None:
    text = shown(large(60), 80)
    assert text.count("□ held") == 23  # 22 findings and the head of the summary
    assert text.count("◧ open") == 31
    assert text.count("– not tested") == 9


def test_claimed_epsilons_and_refusals_are_there() -> None:
    text = flat(shown(FULL, 120))
    assert "claimed of the whole run: epsilon = 4.38 per document, delta = 1e-05" in text
    begun = "masked, at least 100 documents: 19 documents of each of 5 parties in a sum"
    assert f"{begun}: refused by the party “south” (BelowMinimum)" in text


def test_markup_in_words_is_not_obeyed() -> None:
    nasty = "[bold red]danger[/bold red] [link=x]y[/link]"
    one = finding(title=nasty, profile=nasty, claim=nasty, why=nasty, examples=(Example(nasty, nasty, True),))
    text = shown(replace(AUDIT, findings=(one,), not_tried=(nasty,), title=nasty), 400)
    assert text.count(nasty) >= 7
    assert "\x1b" not in text


def test_nothing_is_quoted_where_nothing_is_wanted() -> None:
    assert "river" not in shown(AUDIT, 80, 0)


def test_examples_say_what_is_exact_and_where_there_was_nothing_to_find() -> None:
    listed = (Example("north: ", "", False), Example("south: code", "", False))
    of_words = replace(finding().outcome.measured, unit="count of a word")
    one = finding(examples=listed, measured=of_words, epsilon=8.0, epsilon_unit="word")
    audit = replace(AUDIT, findings=(one,))
    for text in (flat(shown(audit, 120)), flat(audit_page(audit, 2)), flat(summary(audit, 2))):
        assert (
            "“Exact” speaks of a whole row; the figure speaks of each count of a word. The originals are the real words" in text
        )
        assert "north: nothing" in text
    assert "1 finding in" in shown(audit, 80)
    assert "“Exact”" not in shown(AUDIT, 120)


def test_the_curve_says_why_it_shows_more_than_the_result() -> None:
    assert "its threshold is set so that surely no more of all others lie above it" in audit_page(FULL, 2)


def test_terminal_page_and_summary_have_the_same_columns_and_lines() -> None:
    """One definition drives all three: a line of a finding that one of them shows is in the others."""
    screen, page, text = flat(shown(FULL, 300)), unescape(audit_page(FULL, 2)), summary(FULL, 2)
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
