"""The page to sign: its answers, its recommendation, its words, and figures that are those of the record in every form."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from securetm.auditing.attacks import attack_names
from securetm.auditing.evidence import Evidence, to_keep, write_evidence
from securetm.auditing.record import BROKEN, HELD, NOT_TESTED, OPEN, REFUTED, Audit, Finding
from securetm.auditing.regulators import CRITERIA, LINKING, NOT_TRIED, SCOPES, SINGLING_OUT, THE_MODEL, outcome_of
from securetm.contracts import Budget, Unit
from securetm.credentials.keys import fingerprint_of
from securetm.plans.profiles import read_profile
from securetm.reports.audits.wording import figure, tries
from securetm.reports.document import Table
from securetm.reports.markdown import in_markdown
from securetm.reports.pages import in_html
from securetm.reports.statement import sources as report_sources
from securetm.reports.statement.annex import annex, signed_report
from securetm.reports.statement.guesses import right_guesses
from securetm.reports.statement.pdf import in_pdf
from securetm.reports.statement.questions import OTHER_MODEL, SAME_MODEL, THIS_RUN, SignedReport
from securetm.reports.statement.sources import ReportSources

from .audits import AUDIT, CLAIM, IDLE, LEAK, changed
from .test_budget_page import Seen

READ, PARTY, READER, COLLUDE, LIES = range(5)
KEYS = {name: bytes([number]) * 32 for number, name in enumerate(("north", "south", "east", "west"))}
SPENT = {
    "epsilon": 1.9994692,
    "delta": 1e-5,
    "unit": "document",
    "budget": 2.0,
    "all_runs": 1.9994692,
    "all_runs_delta": 1e-5,
    "trial": True,
}


@pytest.fixture(autouse=True)
def own_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No evidence but that which a test puts there."""
    monkeypatch.setattr(report_sources, "evidence_folder", lambda: tmp_path)
    return tmp_path


def audit_of(*findings: Finding) -> Audit:
    return replace(AUDIT, findings=findings, made="2026-11-23")


def sources(profile: str = "masked", *audits: Audit, model: str = "prodlda") -> ReportSources:
    """A finished run of four parties, as its folder would give it."""
    read = read_profile(profile)
    return ReportSources(
        run="trial",
        begun="2026-11-22",
        software="0.1.0",
        model=model,
        rounds=7,
        profile=read,
        plan_digest="ab" * 32,
        federation="",
        members=tuple(KEYS),
        keys=KEYS,
        spent=tuple({"party": name, **(SPENT if read.budget else {"epsilon": None})} for name in KEYS),
        run_digest="cd" * 32,
        model_digest="ef" * 32,
        channels=(("request", 28, 4_411), ("sealed", 28, 1_432)),
        audits=tuple((one, "01" * 32) for one in audits),
    )


def report(profile: str = "masked", *findings: Finding) -> SignedReport:
    return signed_report(sources(profile, *([audit_of(*findings)] if findings else [])))


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


def test_a_promise_that_an_attack_broke_is_told_from_a_leak_that_nobody_promised_to_close() -> None:
    broken = report("masked", changed(CLAIM, verdict=REFUTED, measured=LEAK.outcome.measured))
    assert (broken.answers[READ].standing, broken.answers[READ].short) == (
        BROKEN,
        "Yes, against what is promised, on this run.",
    )
    assert broken.recommendation == "Do not hand over this model, and stop the training."
    leak = report("masked", LEAK)
    assert (leak.answers[READ].standing, leak.answers[READ].short) == (OPEN, "Yes, in part, on this run.")
    assert leak.recommendation == "Hand over this model only to people who may read the documents."
    held = report("masked", CLAIM)
    assert (held.answers[READ].standing, held.answers[READ].short) == (HELD, "1 attempt on this run failed.")
    assert held.headline.startswith("Five questions: 1 held (what was tried failed; that is no proof) and 4 not tested")
    assert held.headline.endswith("1 attempt was made on this run: 1 held.")


def test_without_an_audit_it_says_what_was_not_tried() -> None:
    of = report("masked")
    assert [one.standing for one in of.answers] == [NOT_TESTED] * 5
    assert of.answers[READ].short == "Not tried; it rests on what is promised."
    assert of.answers[PARTY].short == "Assume yes."
    assert "Nothing was tried on this run: no audit of it was made." in of.headline
    assert any("its messages were not kept (--record)" in one for one in of.not_tried)
    assert any("“Can another party?”: tried nowhere" in one for one in of.not_tried)


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


def test_two_who_work_together_are_never_said_to_get_less_than_one_of_them() -> None:
    helped = changed(CLAIM, helpers=2)
    of = report("masked", LEAK, helped)
    answer = of.answers[COLLUDE]
    assert answer.standing == OPEN
    assert answer.short == "Then something gets out that nobody promised to keep in."
    assert "two parties that tell each other, or the coordinator" in answer.sentence
    assert "at least this (“Can the coordinator read my documents?”): Yes, in part, on this run." in answer.sentence
    assert "Beside that: 1 attempt on this run failed." in answer.sentence
    alone = report("masked", helped).answers[COLLUDE]
    assert (alone.standing, alone.short) == (HELD, "1 attempt on this run failed.")


def test_a_budget_that_hardly_limits_is_said_in_the_short_answer() -> None:
    from dataclasses import replace as with_changes

    reader = changed(CLAIM, threat_model="model_reader", adversary="model reader", profile="dp-distributed")
    for epsilon, weak in ((8.0, True), (2.0, False)):
        spent = tuple({**SPENT, "party": name, "epsilon": epsilon} for name in KEYS)
        answer = signed_report(with_changes(sources("dp-distributed", audit_of(reader)), spent=spent)).answers[READER]
        assert ("hardly rules it out" in answer.short) is weak


def test_a_baseline_answers_nothing() -> None:
    assert report("masked", AUDIT.findings[0]).answers[READ].standing == NOT_TESTED


def test_kept_results_answer_where_the_run_was_not_tried_and_stale_ones_only_where_they_leak(own_evidence: Path) -> None:
    for model, finding in {"prodlda": CLAIM, "lda": changed(LEAK, model="lda")}.items():
        kept = to_keep(changed(finding, bound={"trial": "of an older version"}, model=model))
        write_evidence(Evidence("masked", model, "full", (kept,)), own_evidence)
    of = report("masked")
    same, other = of.answers[READ].tried
    assert (same.place, same.standing, same.stale) == ("same profile and model", HELD, True)
    assert (other.place, other.standing, other.model) == ("same profile, another model", OPEN, "lda")
    assert of.answers[READ].standing == NOT_TESTED
    assert "tried on another version of the software" in report("masked").answers[READ].sentence


def keep(folder: Path, *findings: Finding) -> None:
    """Keeps these findings, which are of one profile and model, as trials of our own."""
    run = findings[0].run
    kept = tuple(to_keep(changed(one, bound={"trial": "x"}, epsilon=one.run.epsilon)) for one in findings)
    write_evidence(Evidence(run.profile, run.model, "full", kept), folder)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no kept result were stale."""
    monkeypatch.setattr("securetm.reports.audits.threats.changed_since", lambda *_: ())


@pytest.mark.usefixtures("fresh")
def test_another_model_never_heads_an_answer(own_evidence: Path) -> None:
    """An `lda` run is not headed by documents that were rebuilt from sums of `prodlda`; they are told beside the answer."""
    keep(own_evidence, changed(LEAK, model="prodlda"))
    of = signed_report(sources("masked", model="lda"))
    answer, figure_of_it = of.answers[READ], figure(LEAK.outcome.measured)
    assert (answer.standing, answer.short) == (NOT_TESTED, "Not tried; it rests on what is promised.")
    assert figure_of_it not in answer.short + answer.sentence + of.headline
    (beside,) = answer.tried
    assert (beside.place, beside.model, beside.figure) == (OTHER_MODEL, "prodlda", figure_of_it)
    assert all("no answer for this model" in text for text in texts(of).values())
    assert any("on trials of other models only, for “Can the coordinator" in one.follows for one in of.rules)
    keep(own_evidence, changed(CLAIM, model="lda"))
    same = signed_report(sources("masked", model="lda")).answers[READ]
    assert (same.standing, same.short) == (HELD, "1 attempt in our trials of this profile and model failed.")
    assert [one.place for one in same.tried] == [SAME_MODEL, OTHER_MODEL]


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("epsilon", "unit", "claimed"),
    [
        (SPENT["epsilon"], "document", ""),
        (6.607284489651096, "document", "epsilon = 6.608 per document"),
        (SPENT["epsilon"], "person", "epsilon = 2 per person"),
        (None, "", "no epsilon"),
    ],
)
def test_what_failed_at_another_epsilon_or_unit_is_not_held(
    own_evidence: Path, epsilon: float | None, unit: str, claimed: str
) -> None:
    """The run spends 2 per document: that an attack failed against other noise says nothing about this one."""
    tried = changed(CLAIM, profile="dp-distributed", epsilon=epsilon, epsilon_unit=unit)
    keep(own_evidence, tried)
    of = report("dp-distributed")
    assert of.answers[READ].standing == (NOT_TESTED if claimed else HELD)
    assert of.answers[READ].tried[0].claimed == claimed
    for text in texts(of).values():
        assert (f"it failed at {claimed}, which is not what this run claims" in text) is bool(claimed)
    assert ("What was tried was tried at another epsilon" in of.answers[READ].sentence) is bool(claimed)
    leak = changed(LEAK, profile="dp-distributed", epsilon=epsilon, epsilon_unit=unit)
    keep(own_evidence, leak)
    told = report("dp-distributed").answers[READ]
    assert told.standing == OPEN  # what got out somewhere is not taken back, and it is said where
    assert not claimed or f"at {claimed}" in told.sentence


@pytest.mark.usefixtures("fresh")
def test_a_coordinator_who_sees_no_ledger_claims_what_was_agreed(own_evidence: Path) -> None:
    from dataclasses import replace as with_changes

    keep(own_evidence, changed(CLAIM, profile="dp-distributed", epsilon=7.99, epsilon_unit="document"))
    unknown = with_changes(sources("dp-distributed"), spent=())
    assert signed_report(unknown).answers[READ].standing == HELD  # 8 per document is the profile's own
    other = with_changes(unknown, budget=Budget(Unit.PERSON, 8.0, 1e-5))
    assert signed_report(other).answers[READ].standing == NOT_TESTED


def test_a_model_without_noise_is_the_same_as_one_without_protection(own_evidence: Path) -> None:
    """So what was tried on a finished model without protection answers for it, and says nothing of a model with noise."""
    kept = changed(LEAK, profile="open", model="lda", threat_model="model_reader", adversary="model reader", baseline=True)
    write_evidence(Evidence("open", "lda", "full", (to_keep(changed(kept, bound={"trial": "x"})),)), own_evidence)
    assert signed_report(sources("masked", model="lda")).answers[READER].standing == OPEN
    assert signed_report(sources("dp-distributed", model="lda")).answers[READER].standing == NOT_TESTED


# ---- what was spent, and what is recommended -----------------------------------------------------------------------


def test_the_most_right_guesses_are_those_of_randomised_response() -> None:
    """Whoever answers truly with probability p, and falsely else, is guessed rightly with p, and spends ln(p / (1 - p))."""
    assert right_guesses(0.0, 0.0) == 0.5
    assert right_guesses(1.0986122886681098, 0.0) == pytest.approx(0.75)
    assert right_guesses(0.0, 0.1) == pytest.approx(0.55)  # told outright once in ten times, a coin else
    assert right_guesses(1e9, 0.0) == 1.0


def test_a_guess_that_may_be_wrong_is_never_said_to_be_right_always() -> None:
    from dataclasses import replace as with_changes

    one = with_changes(sources("dp-distributed"), spent=tuple({**SPENT, "party": name, "epsilon": 8.0} for name in KEYS))
    assert "right at most 99.97 times in 100" in " ".join(signed_report(one).spent)
    sure = with_changes(sources("dp-distributed"), spent=tuple({**SPENT, "party": name, "epsilon": 80.0} for name in KEYS))
    assert "right at most 100 times in 100" in " ".join(signed_report(sure).spent)


def test_guesses_are_limited_by_all_runs_and_not_by_this_one_alone() -> None:
    """Three runs of 3.2 each: this one alone would allow 96.1 times in 100, all of them 99.7."""
    from dataclasses import replace as with_changes

    def of(**known: float | str | None) -> SignedReport:
        spent = tuple({**SPENT, "party": name, "epsilon": 3.2, **known} for name in KEYS)
        return signed_report(with_changes(sources("dp-distributed"), spent=spent))

    alone, together = of(all_runs=3.2, trial=True), of(all_runs=5.8, trial=False)
    assert "96.1 times in 100" in " ".join((*alone.spent, alone.answers[READER].limit))
    for said in (" ".join(together.spent), together.answers[READER].limit):
        assert "99.7 times in 100" in said
        assert "96.1" not in said
        assert "all runs so far" in said
    assert "Per person it is more: 11.6 for 2 documents" in " ".join(together.spent)
    weak = next(one for one in together.rules if "a limit that securetm chose" in one.rule)
    assert weak.applies
    assert together.recommendation == "Hand over this model only to people who may read the documents."
    assert "hardly rules it out" in together.answers[READER].short
    begun = of(all_runs=5.8, all_runs_delta=0.2, trial=True)  # a trial that started from what another run had paid for
    assert "epsilon = 5.8, with delta = 0.2" in " ".join(begun.spent)
    assert "right at most 99.8 times in 100" in begun.answers[READER].limit  # the larger delta counts, too
    without = of(all_runs=None, unbounded_because="run march (profile 'masked' has no bound)", trial=False)
    for said in (" ".join(without.spent), without.answers[READER].limit):
        assert "unbounded, because of run march" in said
    assert without.recommendation == together.recommendation


def test_what_a_person_spends_follows_from_what_a_document_spends() -> None:
    said = " ".join(report("dp-distributed").spent)
    assert "At most epsilon = 2 per document, with delta = 1e-05; one chance in 100,000 that this limit fails." in said
    assert "is right at most 88.1 times in 100" in said
    assert "Per person it is more: 3.999 for 2 documents (delta = 8.39e-05); 9.998 for 5 documents" in said
    assert report("masked").spent == ("There is no budget: nothing limits what the results tell of one document or person.",)


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
    record += [fingerprint_of(key) for key in KEYS.values()]
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


@pytest.mark.usefixtures("fresh")
def test_what_was_tried_on_this_run_is_said_before_all_else(own_evidence: Path) -> None:
    keep(own_evidence, LEAK)
    answer = report("masked", CLAIM).answers[READ]
    assert answer.standing == OPEN
    assert answer.short == "1 attempt on this run failed; yes, in part, in our trials of this profile and model."
    assert answer.sentence.index("on this run") < answer.sentence.index("in our trials")
    assert [one.place for one in answer.tried] == [THIS_RUN, SAME_MODEL]


def test_a_failure_says_what_was_promised_how_hard_it_was_tried_and_what_could_have_come_out() -> None:
    answer, found = report("masked", changed(CLAIM, spent="4 rounds, 300 documents")).answers[READ], CLAIM.outcome.measured
    assert "Promised is: " in answer.sentence
    shown = "is shown totals over several parties, and no single answer; what a total says can be worked out"
    assert f"{shown}, even if 2 parties help" in answer.sentence
    assert f"{figure(found)} documents rebuilt with every counted word right, {tries(found)}" in answer.sentence
    assert "an ideal attacker, never wrong, would surely have reached 98.8\N{NO-BREAK SPACE}%" in answer.sentence
    assert "It was tried with 4 rounds, 300 documents." in answer.sentence
    for text in texts(report("masked", CLAIM)).values():
        assert "an ideal attacker, never wrong, would surely have reached 98.8 % by as many tries" in text
        assert "cannot be done" not in text


@pytest.mark.usefixtures("fresh")
def test_a_promise_that_was_broken_with_another_model_stops_the_hand_over_all_the_same(own_evidence: Path) -> None:
    keep(own_evidence, changed(CLAIM, verdict=REFUTED, measured=LEAK.outcome.measured, model="prodlda"))
    assert signed_report(sources("masked", model="lda")).recommendation.startswith("Do not hand over this model")
