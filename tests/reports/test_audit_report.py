"""An audit in the terminal, on its page, as a text and as a file: all of the findings, and nothing improved by hand."""

from __future__ import annotations

import json
import math
import re
import stat
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from securetm.auditing.evidence import record
from securetm.auditing.record import Audit, Curve, Example, Finding
from securetm.errors import Mistake
from securetm.figures import Figure
from securetm.foreign_text import markdown_text
from securetm.reports.audits.records import read_record, write_record
from securetm.reports.audits.report import (
    audit_page,
    bars,
    figures,
    findings_table,
    result_of,
    show_audit,
    summary,
    write_audit,
    write_summary,
)
from securetm.reports.audits.wording import share
from securetm.reports.document import Bars, Table, lines_of, plain

from .audits import AUDIT, CLAIM, EMPIRICAL, FULL, MEMBERSHIP, PROTECTED, UNPROTECTED, changed, finding, large
from .browser import Tab
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


# ---- written down and read again -------------------------------------------------------------------------------------------


def written(tmp_path: Path, plain: Any) -> Path:
    path = tmp_path / "audit.json"
    path.write_text(plain if isinstance(plain, str) else json.dumps(plain), "utf-8")
    return path


def as_kept(audit: Audit) -> Audit:
    """The audit with what its examples show: words that did not leak are not kept."""
    shown = (replace(one, outcome=replace(one.outcome, examples=one.leaked)) for one in audit.findings)
    return replace(audit, findings=tuple(shown))


def test_what_is_read_again_is_what_was_written(tmp_path: Path) -> None:
    """With intervals that have no end, curves, refusals, and a page that is the same to the last byte."""
    read = read_record(write_record(FULL, tmp_path, 6))
    assert read == as_kept(FULL)
    assert audit_page(read, 6) == audit_page(FULL, 6)


def test_no_more_examples_are_kept_than_were_wanted(tmp_path: Path) -> None:
    assert "river" not in write_record(AUDIT, tmp_path, 0).read_text("utf-8")
    assert all(finding.outcome.examples == () for finding in read_record(tmp_path).findings)


def test_the_folder_of_a_run_gives_the_only_audit_in_it(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="nothing was kept"):
        read_record(tmp_path)
    write_record(AUDIT, tmp_path, 2)
    assert read_record(tmp_path) == as_kept(AUDIT)
    write_record(large(3), tmp_path, 2)
    with pytest.raises(Mistake, match=r"it keeps several: name one of .*full\.json, .*quick\.json"):
        read_record(tmp_path)


GONE = object()
DAMAGED: dict[str, tuple[tuple[str | int, ...], Any, str]] = {  # where, what stands there instead, and what is said of it
    "no findings": (("findings",), GONE, "the file: object missing required field `findings`"),
    "findings that are none": (("findings",), {}, "must be a list"),
    "a finding that is none": (("findings", 7), "x", "finding 8.*must be a table"),
    "no verdict": (("findings", 0, "verdict"), GONE, "finding 1: object missing required field `verdict`"),
    "no such verdict": (("findings", 0, "verdict"), "safe", "`verdict` in finding 1: expected .*refuted.not refuted"),
    "an improved verdict": (("findings", 0, "verdict"), "not refuted", "does not follow from an interval from 0.948"),
    "a worsened verdict": (("findings", 1, "verdict"), "refuted", "`verdict` in finding 2 is 'refuted'; it does not follow"),
    "nothing tried, and yet held": (("findings", 3, "verdict"), "not refuted", "finding 4.*does not follow"),
    "a verdict taken back": (("findings", 0, "verdict"), "not tested", "it does not follow from an interval from 0.948"),
    "a value outside": (("findings", 0, "value"), 0.1, "does not lie within its interval"),
    "a word for a number": (("findings", 0, "low"), "much", "`low` in finding 1: expected `float`, got `str`"),
    "an unknown field": (("findings", 0, "secure"), True, "there is no field called 'secure' in finding 1"),
    "another count": (("refuted_claims",), 3, "`refuted_claims` in the file is 3; it does not follow"),
    "a lame curve": (("findings", 4, "curves", 0, "up", -1), GONE, "must be the number of points of `across`"),
    "a curve of words": (("findings", 4, "curves", 0, "up", 0), "x", "in finding 5: expected `float`"),
    "a rate that is none": (("findings", 4, "curves", 0, "up", 2), 7, "is 7.0; it cannot lie on"),
    "a control that is gone": (("findings", 1, "chance"), GONE, "`chance` in finding 2 is missing"),
    "a number without end": (("findings", 1, "low"), math.nan, "`low` in finding 2 is nan; it is no number"),
    "a number too large": (("findings", 5, "seconds"), 1e308, "`seconds` in finding 6.* 1e.308; it is no number"),
    "a number too long": (("findings", 5, "tests"), 10**400, "`tests` in finding 6 is inf; it is no"),
    "a number deep inside": (("findings", 4, "curves", 0, "up", 2), 1e308, "`up 3` in finding 5, curve 1.* 1e.308; it is no"),
    "ends in the wrong order": (("findings", 7, "low"), 2.4, "finding 8: `low` is 2.4; it lies"),
    "more hits than tries": (("findings", 0, "hits"), 301, "finding 1: `hits` is 301; it must be from 0 to 300"),
    "hits that are not the value": (("findings", 0, "hits"), 290, "is not 290 of 300"),
    "an interval too narrow": (("findings", 1, "high"), 0.001, "`interval` in finding 2 is .*; it is narrower"),
    "a confidence of all": (("findings", 0, "confidence"), 1.0, "`confidence` in finding 1: expected `float` < 1"),
    "helpers below none": (("findings", 0, "helpers"), -1, "`helpers` in finding 1: expected `int` >= 0"),
    "a day that is none": (("made",), "yesterday", "`made` in the file: expected"),
    "a refusal of nobody": (("refusals", 0, "by"), "", "refusals.*: `by` is missing"),
    "a refusal without a reason": (("refusals", 0, "reason"), GONE, "refusals.*missing.* `reason`"),
}


def damaged(place: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    plain = whole = json.loads(json.dumps(record(FULL, 2)))
    for name in place[:-1]:
        plain = plain[name]
    if value is GONE:
        del plain[place[-1]]
    else:
        plain[place[-1]] = value
    return dict(whole)


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_refused_by_name(name: str, tmp_path: Path) -> None:
    place, value, message = DAMAGED[name]
    with pytest.raises(Mistake, match=message):
        read_record(written(tmp_path, damaged(place, value)))


def test_a_baseline_that_held_takes_the_verdicts_that_rest_on_it_with_it(tmp_path: Path) -> None:
    plain = damaged(("findings", 0, "verdict"), "not refuted")
    plain["findings"][0] |= {"value": 0.0, "hits": 0, "low": 0.0, "high": 0.013}
    with pytest.raises(Mistake, match=r"finding 2 is 'not refuted'; it does not follow .* a baseline that was not broken"):
        read_record(written(tmp_path, plain))


@pytest.mark.parametrize("command", ["\x1b[2J", "\x9b2J", "\r", "\u202e", "\ud800", "\x00"])
def test_what_a_terminal_would_obey_is_spelt_out(command: str, tmp_path: Path) -> None:
    plain = json.loads(json.dumps(record(FULL, 2)).replace("river", f"ri{json.dumps(command)[1:-1]}ver"))
    plain["title"] = plain["not_tried"][0] = plain["findings"][0]["why"] = plain["refusals"][0]["by"] = f"a{command}b"
    read = read_record(written(tmp_path, plain))
    for text in (
        read.title,
        read.not_tried[0],
        read.findings[0].outcome.why,
        read.refusals[0].by,
        read.findings[0].outcome.examples[0].original,
    ):
        assert command not in text
        assert "\\" in text
    plain["findings"][0]["verdict"] = f"safe{command}"
    with pytest.raises(Mistake, match="`verdict` in finding 1") as refused:
        read_record(written(tmp_path, plain))
    assert command not in str(refused.value)


def test_only_its_owner_can_read_what_was_recovered(tmp_path: Path) -> None:
    """Also where the files were there before, open to all."""
    places = [tmp_path / "audits" / "quick.json", tmp_path / "audit.html", tmp_path / "audit.md"]
    for path in places[1:]:
        path.touch(mode=0o644)
    write_record(AUDIT, tmp_path, 2)
    write_audit(AUDIT, places[1], 2)
    write_summary(AUDIT, places[2], 2)
    assert [stat.filemode(path.stat().st_mode) for path in places] == ["-rw-------"] * 3
    assert stat.filemode((tmp_path / "audits").stat().st_mode) == "drwx------"
    write_audit(AUDIT, tmp_path / "silent.html", 0)
    assert (tmp_path / "silent.html").stat().st_mode & 0o044  # what quotes nothing may be shown to anybody


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"plan": 1}', "[" * 100_000, "\x00"])
def test_what_is_no_record_at_all_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake):
        read_record(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="No such file"):
        read_record(tmp_path / "absent.json")
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Mistake, match="no JSON"):
        read_record(tmp_path / "audit.json")


# ---- in a real browser -----------------------------------------------------------------------------------------------------


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
