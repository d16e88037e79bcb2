"""Which of the regulators' questions an attack bears on, and what a run's findings say to each."""

from __future__ import annotations

from msgspec.structs import replace

from securetm.auditing.attack import Proportion
from securetm.auditing.attacks import attack_called, attack_names
from securetm.auditing.evidence import record
from securetm.auditing.judging import measured
from securetm.auditing.record import NOT_REFUTED, REFUTED, Audit, Finding
from securetm.auditing.regulators import (
    ABOVE_CHANCE,
    CRITERIA,
    INFERENCE,
    LINKING,
    NOT_SHOWN,
    NOT_TRIED,
    SHOWN,
    SINGLING_OUT,
    THE_MODEL,
    THE_TRAINING,
    anonymity_questions,
    bears_on,
)
from tests.reports.audits import AUDIT, changed, finding

OF_NO_PERSON = {
    *("many_run_epsilon", "many_run_pairs", "many_run_words"),
    *("answer_times", "poisoning", "prepared_weights", "traffic"),
}


def _of_run(*findings: Finding) -> Audit:
    return replace(AUDIT, run="mine", findings=tuple(changed(one, name="mine") for one in findings))


def _found(hits: int, of: int = 300, **changes: object) -> Finding:
    share = measured("members found", "document", Proportion(hits, of), 0.95)
    return finding(
        baseline=False, measured=share, chance=measured("members found", "document", Proportion(3, 300), 0.95), **changes
    )


def _outcomes(audit: Audit) -> dict[tuple[str, str], str]:
    return {(one.criterion, one.scope): one.outcome for one in anonymity_questions(audit)}


def test_every_attack_is_sorted_and_every_criterion_is_known() -> None:
    for name in attack_names():
        assert bears_on(name) == attack_called(name).bears_on
        assert set(bears_on(name)) <= set(CRITERIA)
    assert {name for name in attack_names() if not bears_on(name)} == OF_NO_PERSON
    assert bears_on("an attack of another machine") == ()


def test_documents_from_messages_single_somebody_out_and_say_nothing_of_the_model() -> None:
    found = _outcomes(_of_run(_found(292, verdict=REFUTED)))
    assert found[SINGLING_OUT, THE_TRAINING] == found[INFERENCE, THE_TRAINING] == SHOWN
    assert found[SINGLING_OUT, THE_MODEL] == found[LINKING, THE_TRAINING] == NOT_TRIED


def test_what_an_epsilon_allows_is_still_above_chance() -> None:
    """A claim that is not refuted may leave an attacker better off than chance: that is what the opinion asks about."""
    allowed = _found(60, attack="membership", sees=("model", "vocabulary"), verdict=NOT_REFUTED, refuted_from=0.4)
    nothing = changed(_found(3, attack="membership_counts", sees=("model", "vocabulary"), verdict=NOT_REFUTED))
    linked = next(
        one for one in anonymity_questions(_of_run(nothing, allowed)) if (one.criterion, one.scope) == (LINKING, THE_MODEL)
    )
    assert linked.outcome == ABOVE_CHANCE
    assert linked.shown_by == ("membership",)
    assert linked.attacks == ("membership", "membership_counts")
    assert _outcomes(_of_run(nothing))[LINKING, THE_MODEL] == NOT_SHOWN


def test_files_hold_the_questions_and_what_each_finding_bears_on() -> None:
    kept = record(_of_run(_found(292, verdict=REFUTED)), 0)
    assert kept["findings"][0]["bears_on"] == [SINGLING_OUT, INFERENCE]
    assert {one["criterion"] for one in kept["anonymity"]} == set(CRITERIA)
