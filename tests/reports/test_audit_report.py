"""An audit in the terminal, on its page and as a text: all of the findings, and nothing that only colour would tell."""

from __future__ import annotations

import math
import re
from html import unescape
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from securetm.auditing.attack import Estimate
from securetm.auditing.judging import measured
from securetm.auditing.record import REFUTED, Audit, Curve, Example, Finding, RefusalRecord
from securetm.figures import Figure
from securetm.foreign_text import markdown_text
from securetm.reports.audits.report import (
    audit_page,
    bars,
    counts_table,
    figures,
    findings_table,
    refusals_table,
    result_of,
    show_audit,
    summary,
)
from securetm.reports.audits.wording import CAUTION, claimed_epsilon, headline, promised, share
from securetm.reports.document import Bars, Table, lines_of, plain

from .audits import (
    AUDIT,
    CLAIM,
    EMPIRICAL,
    FULL,
    IDLE,
    MEMBERSHIP,
    PROTECTED,
    UNIT,
    UNPROTECTED,
    changed,
    finding,
    large,
)
from .test_budget_page import Seen

SPACE = "\N{NO-BREAK SPACE}"


def said(audit: Audit, examples: int = 2) -> str:
    return " ".join(" ".join(Seen(audit_page(audit, examples)).text).split()).replace(SPACE, " ")


def test_the_page_holds_all_of_the_audit() -> None:
    seen, text = Seen(audit_page(AUDIT, 2)), said(AUDIT)
    assert seen.open == []
    for wanted in (
        "What <is> learned?", "1. Documents from <one> gradient, profile open", "4. Documents", "97.3 % (94.8 % to 98.9 %)",
        "292 of 300", "□ held", "– not tested", "◧ open", "the total may be known", "river ×2, <boat>",
        "membership & more", "securetm audit quick", "Somebody 2020", "request, answer", "the first; the second", "by chance",
        "baseline: known not to hold", "claimed by the profile", "25 % (12.6 % to 41.2 %)", "10 of 40", CAUTION,
        "one try is one document", "counts as success from 5 % on", "confidence 95 %", "interval would begin at 98.7 %",
    ):  # fmt: skip
        assert wanted in text, wanted
    assert "safe:" not in text


def test_a_claimed_epsilon_stands_beside_what_was_shown_with_the_correction_for_several_tests() -> None:
    text = said(FULL)
    for wanted in (
        "epsilon = 1 per document, delta = 1e-05",
        "99.975 %: 4 claimed epsilons are tested here",
        "hold together at no less than 99.9 % (Bonferroni)",
        "from 0.27 % on, which is the most that the claimed epsilon allows",
        "epsilon shown for certain: 1.42 (0.62 to 2.31)", "7.1 (5.2 to no bound)", "could show 4.6 at most",
    ):  # fmt: skip
        assert wanted in text, wanted


def test_an_epsilon_is_never_written_without_its_unit() -> None:
    word, unknown = (claimed_epsilon(finding(epsilon=8.0001, epsilon_unit=unit)) for unit in ("word", ""))
    assert word == "epsilon = 8.001 per word occurrence"
    assert unknown == "epsilon = 8.001 per unit that was not noted"


def test_refusals_and_channels_have_their_tables() -> None:
    text = said(FULL)
    refused = "refused by the party “south” (BelowMinimum); no sum of the training was opened"
    assert f"masked 100 19 documents of each of 5 parties in a sum {refused}" in text
    assert "coordinator of curious_coordinator seen seen – –" in text
    assert "model reader of published_model – – seen seen" in text
    went_on = replace(FULL.refusals[0], refused=False, by="", reason="")
    assert "went on: the minimum does not hold here" in said(replace(FULL, refusals=(went_on,)))


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


def test_an_audit_that_found_nothing_still_has_a_page() -> None:
    nothing = replace(AUDIT, findings=(), not_tried=())
    assert "No claim of any profile was tried" in said(nothing)
    assert {"- nothing, to these attacks at this effort", "- nothing is noted"} <= set(summary(nothing, 2).splitlines())
    every = measured("epsilon shown", UNIT, Estimate(math.inf, math.inf, math.inf, math.inf), 0.95)
    assert "no bound" in said(replace(AUDIT, findings=(finding(measured=every),)))


@pytest.mark.slow
def test_many_findings_make_a_page_of_moderate_size_with_all_folded() -> None:
    text = audit_page(large(20), 6)
    assert len(text.encode()) < 600_000
    tags = Seen(text).tags
    folded = [attrs for tag, attrs in tags if tag == "details"]
    assert len(folded) == 20
    assert not any("open" in attrs for attrs in folded)
    assert all("open" in attrs for tag, attrs in Seen(audit_page(FULL, 2)).tags if tag == "details")


def test_the_headline_never_says_more_than_was_tried() -> None:
    assert headline(replace(AUDIT, findings=(finding(), CLAIM))) == (
        "One claim (1 finding) was tried and held against these attacks at this effort: “sees only sums” against the "
        "coordinator (profile masked)."
    )
    assert headline(replace(AUDIT, findings=(finding(),))).startswith("No claim of any profile was tried")
    idle = changed(IDLE, claimed=True)
    assert headline(replace(AUDIT, findings=(idle,))) == (
        "Nothing was learned about any claim. Nothing was learned from 1 of 1 finding, and so nothing of 1 claim: "
        f"{idle.outcome.why} (1)."
    )
    twice = headline(replace(AUDIT, findings=(CLAIM, CLAIM, idle)))
    assert twice.startswith("One claim (2 findings) was tried and held")
    assert f"Nothing was learned from 1 of 3 findings: {idle.outcome.why} (1)." in twice
    elsewhere = changed(idle, profile="fortress")
    assert "1 of 2 findings, and so nothing of 1 claim: " in headline(replace(AUDIT, findings=(CLAIM, elsewhere)))
    broken = changed(CLAIM, verdict=REFUTED)
    assert headline(replace(AUDIT, findings=(broken,))).startswith("Broken: “sees only sums” of profile masked")
    assert "as no profile promises to prevent it: documents from <one> gradient (profile masked)" in headline(AUDIT)


def test_headline_and_table_count_the_same_findings() -> None:
    other = changed(CLAIM, profile="fortress")
    audit = replace(AUDIT, findings=(finding(), CLAIM, CLAIM, other, changed(IDLE, claimed=True)))
    assert counts_table(audit).rows[0] == ("claims of a profile", "0", "0", "3", "1")
    assert headline(audit).startswith("2 claims (3 findings) were tried and held")
    assert "“sees only sums” against the coordinator (profile masked, fortress)" in headline(audit)


def test_an_epsilon_says_against_whom_it_is_promised() -> None:
    """Beside what nobody claims against this adversary, an epsilon must not look claimed."""
    noised = {"epsilon": 1.0526, "delta": 1e-5, "epsilon_unit": "document", "profile": "dp-central", "baseline": False}
    private = "the total is differentially private"
    others = finding(**noised, claim=private, claimed=False)
    assert promised(others).endswith("promised of what is handed on, such as the model, not against this coordinator")
    assert promised(finding(**noised, claim=private, claimed=True)).startswith("claimed of the whole run: epsilon = 1.053 per")
    assert promised(finding(**noised, claim="sees only sums", claimed=False)).startswith("another promise of this run: epsilon")
    assert promised(finding()) == ""
    text = audit_page(replace(AUDIT, findings=(others,)), 0)
    assert "claimed: epsilon" not in text
    assert promised(others) in text


def test_an_ideal_attacker_is_told_in_the_numbers_of_the_measure() -> None:
    unit = "epsilon that one sum claims"
    shares = measured("share of one sum's epsilon that is shown", unit, Estimate(0.92, 0.85, 0.99, 10.8), 0.95)
    lines = (
        Curve("epsilon", "an ideal attacker, on average", (4.0, 4.7), (3.5, 4.4)),
        Curve("epsilon", "shown", (4.7,), (4.0,)),
    )
    text = audit_page(replace(AUDIT, findings=(finding(measured=shares, chance=shares, curves=lines, epsilon=4.75),)), 0)
    assert "an ideal attacker, never wrong, at most 10.8 times what is claimed" in text
    assert "could show 10.8 times what is claimed at most with as many tries, if it were never wrong" in text
    bare = audit_page(replace(AUDIT, findings=(finding(measured=shares, chance=shares),)), 0)
    assert "at most an epsilon of 10.8, where none is claimed" in bare
    for wanted in ("claimed of one sum", "shown (lower end of its interval)", "one that is never wrong could show more"):
        assert wanted in text


def test_promises_that_were_not_kept_stand_first() -> None:
    held = RefusalRecord("masked", "a sum of ten", 10, 100, True, "south", "BelowMinimum")
    broken = RefusalRecord("masked", "other weights", 0, 0, False, "", "")
    rows = refusals_table(replace(AUDIT, refusals=(held, broken))).rows
    assert [row[2] for row in rows] == ["other weights", "a sum of ten"]


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


def test_examples_say_what_is_exact_and_where_there_was_nothing_to_find() -> None:
    listed = (Example("north: ", "", False), Example("south: code", "", False))
    of_words = replace(finding().outcome.measured, unit="count of a word")
    one = finding(examples=listed, measured=of_words, epsilon=8.0, epsilon_unit="word")
    audit = replace(AUDIT, findings=(one,))
    for text in (flat(on_screen(audit, 120)), flat(audit_page(audit, 2)), flat(summary(audit, 2))):
        assert (
            "“Exact” speaks of a whole row; the figure speaks of each count of a word. The originals are the real words" in text
        )
        assert "north: nothing" in text
    assert "1 finding in" in on_screen(audit, 80)
    assert "“Exact”" not in on_screen(AUDIT, 120)


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
