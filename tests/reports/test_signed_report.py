"""The page to sign: its answers, its recommendation, its words, and figures that are those of the record in every form."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from securetm.auditing.attacks import attack_names
from securetm.auditing.record import HELD, NOT_TESTED, OPEN
from securetm.auditing.regulators import CRITERIA, LINKING, NOT_TRIED, SCOPES, SINGLING_OUT, THE_MODEL, outcome_of
from securetm.plans.profiles import read_profile
from securetm.reports.audits.wording import figure, tries
from securetm.reports.document import Table
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.statement import sources as report_sources
from securetm.reports.statement.annex import annex, signed_report
from securetm.reports.statement.guesses import right_guesses
from securetm.reports.statement.pdf import in_pdf
from securetm.reports.statement.questions import SignedReport

from .audits import CLAIM, IDLE, LEAK, changed
from .said import FINGERPRINTS, audit_of, report, sources
from .test_budget_page import Seen

READ, PARTY, READER, COLLUDE, LIES = range(5)


@pytest.fixture(autouse=True)
def own_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No evidence but that which a test puts there."""
    monkeypatch.setattr(report_sources, "evidence_folder", lambda: tmp_path)
    return tmp_path


def texts(of: SignedReport) -> dict[str, str]:
    """What each form of the page shows, without its markup and breaks."""
    from pypdf import PdfReader

    made = annex(of)
    found = {
        "page": " ".join(Seen(in_html(made)).text),
        "text": in_markdown(made).replace("\\", ""),
        "pdf": " ".join(sheet.extract_text() for sheet in PdfReader(io.BytesIO(in_pdf(made))).pages),
    }
    return {name: re.sub(r"\s+", " ", text.replace("\N{NO-BREAK SPACE}", " ")) for name, text in found.items()}


# ---- answers -------------------------------------------------------------------------------------------------------


def test_what_an_audit_left_out_for_a_reason_is_named_with_it() -> None:
    why = "to speak of 0.1 % false alarms it needs 3,688 documents that were not trained on, and this run has 14"
    audit = replace(audit_of(CLAIM), not_tried=(f"the attack “Who was in it” (membership): {why}", "the attack “X” (y)"))
    of = signed_report(sources("masked", audit))
    assert f"“Who was in it”: {why}" in of.not_tried


def test_each_attempt_answers_the_question_about_its_adversary() -> None:
    helped = changed(LEAK, helpers=2)
    lying = changed(LEAK, threat_model="active_coordinator")
    reader = changed(LEAK, threat_model="model_reader", adversary="model reader")
    other = changed(LEAK, adversary="party")
    for number, one in {READ: LEAK, PARTY: other, READER: reader, COLLUDE: helped, LIES: lying}.items():
        standings = [answer.standing for answer in report("masked", one).answers]
        also = {READ: {COLLUDE, LIES}, PARTY: {COLLUDE}}.get(number, set())  # who can do no less than one alone
        assert standings == [OPEN if place == number or place in also else NOT_TESTED for place in range(5)]
    three = changed(LEAK, helpers=3)  # that three can do something says nothing of two
    assert report("masked", three).answers[COLLUDE].standing == NOT_TESTED
    assert report("masked", changed(CLAIM, helpers=3)).answers[COLLUDE].standing == HELD


# ---- what was spent, and what is recommended -----------------------------------------------------------------------


def test_the_most_right_guesses_are_those_of_randomised_response() -> None:
    """Whoever answers truly with probability p, and falsely else, is guessed rightly with p, and spends ln(p / (1 - p))."""
    assert right_guesses(0.0, 0.0) == 0.5
    assert right_guesses(1.0986122886681098, 0.0) == pytest.approx(0.75)
    assert right_guesses(0.0, 0.1) == pytest.approx(0.55)  # told outright once in ten times, a coin else
    assert right_guesses(1e9, 0.0) == 1.0


# ---- every form ----------------------------------------------------------------------------------------------------

_GROUPS = re.compile(r"[\d.]+ for \d+ documents \(delta = [\de.-]+\)")
CONSTANTS = {"100", "50", "99", "256", "1,000", "2", "1", "0"}  # of sentences that stand on every page
OPINIONS = {"28", "2024", "05", "2014"}  # the numbers of those that the page names


@pytest.mark.parametrize("profile", ["masked", "dp-distributed"])
def test_every_figure_of_every_form_is_one_of_the_record(profile: str) -> None:
    """Whatever digits are left over when what the records say is taken away are of sentences that never change."""
    tried = changed(CLAIM, profile=profile)
    leak = changed(LEAK, profile=profile)
    of = report(profile, tried, leak)
    found = LEAK.outcome.measured
    record = [figure(found), tries(found), "trial", "0.1.0", "2026-11-22", "2026-11-23"]
    record += ["ab" * 32, "cd" * 32, "ef" * 32, "01" * 32, read_profile(profile).digest.hex()]
    record += FINGERPRINTS
    record += ["28 messages, 4,411 bytes", "28 messages, 1,432 bytes", "7 rounds"]
    if profile == "dp-distributed":
        record += [
            "epsilon = 2",
            "1e-05",
            "100,000",
            "88.1",
            *_GROUPS.findall(str(of.spent)),
        ]
    for name, text in texts(of).items():
        for said in record:
            plain = said.replace("\N{NO-BREAK SPACE}", " ")
            assert plain in text, (name, plain)
            text = text.replace(plain, "")
        assert not re.search(r"\b(TPR|FPR|false positive|likelihood ratio|Bonferroni|Clopper)\b", text)
        left = set(re.findall(r"\d[\d,.]*\d|\d", re.sub(r"sheet \d / \d", "", text)))
        assert left <= CONSTANTS | OPINIONS | {str(number) for number in range(len(attack_names()) + 1)}, (
            name,
            left,
        )  # and counts of attempts


def test_the_questions_of_regulators_have_the_figures_of_the_record_in_every_form() -> None:
    member = changed(LEAK, attack="membership", sees=("model", "vocabulary"))
    of = report("masked", LEAK, member, changed(LEAK, attack="membership", baseline=True))
    asked = {(one.criterion, one.scope): one for one in of.regulators}
    assert len(asked) == len(CRITERIA) * len(SCOPES)
    linked, singled = asked[LINKING, THE_MODEL], asked[SINGLING_OUT, THE_MODEL]
    assert (linked.figure, linked.value, linked.attempts) == (figure(member.outcome.measured), member.outcome.measured.value, 1)
    assert (singled.outcome, singled.value) == (NOT_TRIED, None)
    assert linked.outcome == outcome_of(member)
    for text in texts(of).values():
        assert f"{linked.outcome}: {linked.figure} {linked.measure}".replace("\N{NO-BREAK SPACE}", " ") in text
        assert "does not say that the model is anonymous" in text
    assert report("masked").regulators == ()
    assert all("Nothing of this was tried on this run" in text for text in texts(report("masked")).values())


@pytest.mark.parametrize("profile", ["masked", "iftm"])
def test_a_pdf_has_at_most_four_sheets_and_is_the_same_to_the_last_byte(profile: str) -> None:
    from pypdf import PdfReader

    made = annex(report(profile, *(changed(one, profile=profile) for one in (CLAIM, LEAK, IDLE))))
    first = in_pdf(made)
    assert first == in_pdf(made)
    assert len(PdfReader(io.BytesIO(first)).pages) <= 4


def test_five_marks_stand_on_top_of_every_form() -> None:
    of = report("masked", CLAIM, LEAK, changed(CLAIM, helpers=2))
    first = annex(of).sections[0]
    (table,) = (block for block in first.blocks if isinstance(block, Table))
    assert [row[:2] for row in table.rows] == [(one.question, one.standing) for one in of.answers]
    for text in texts(of).values():
        places = [text.index(one.question) for one in of.answers]
        assert places == sorted(places)
        assert places[-1] < text.index(of.recommendation)
