"""Audit plans: the shelf is readable and fits its attacks, and every attack bears on a question of the regulators."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from securetm.auditing.attack import Proportion
from securetm.auditing.attacks import attack_called, attack_names
from securetm.auditing.evidence import record
from securetm.auditing.judging import measured
from securetm.auditing.plans import audit_plan_names, read_audit_plan
from securetm.auditing.record import NOT_REFUTED, REFUTED, Audit, Finding
from securetm.auditing.recorded import granted_to
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
from securetm.auditing.runs import fitting
from securetm.errors import BadSetting, Misuse, NotFound
from securetm.plans.recommend import whole_plan
from securetm.resources import data_folder

from ..quick_part import quick
from ..reports.audits import AUDIT, changed, finding
from .conftest import adversary

SHELF = data_folder("audits") / "plans"
GOOD = (SHELF / "quick.toml").read_text()


@pytest.mark.parametrize("name", audit_plan_names())
def test_the_shelf_is_sound(name: str) -> None:
    plan = read_audit_plan(name)
    assert plan.name == name
    for trial in plan.trials:
        attack = attack_called(trial.attack)
        assert trial.measure in attack.measures
        assert set(attack.efforts) <= set(trial.effort)
        granted_to(attack, adversary(trial.adversary, trial.threat_model))  # raises where the adversary does not see enough


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ('name  = "quick"', 'name = "slow"', BadSetting, "must be the name of its file"),
        ('threat_model = "curious_coordinator"', 'threat_model = "nobody"', NotFound, "threat model"),
        ('adversary    = "coordinator"', 'adversary = "neighbour"', BadSetting, "must be one of coordinator, party"),
        ('adversary    = "coordinator"', 'adversary = "party"', BadSetting, "is neither required against party"),
        ('"sees only sums"', '"sees nothing"', BadSetting, "is neither required against coordinator"),
        ('profiles     = ["open", "masked"]', 'profiles = ["shut"]', NotFound, "'shut'"),
        ('profiles     = ["open", "masked"]', 'profiles = ["open", "open"]', BadSetting, "twice"),
        ('profiles     = ["open", "masked"]', "profiles = []", BadSetting, "must be one of the profiles tried"),
        ('attack       = "gradient_inversion"', 'attack = "guessing"', NotFound, "no attack called 'guessing'"),
        ("refuted_from = 0.05", "", BadSetting, "`refuted_from` in .* is missing"),
        ('expect_fail  = "open"', 'expect_fail = "bfv"', BadSetting, "must be one of the profiles tried"),
        ("refuted_from = 0.05", "refuted_from = 0.05\nconfidence = 1.0", BadSetting, "below 1"),
        ("refuted_from = 0.05", "refuted_from = 5", BadSetting, "not above 1"),
        ("refuted_from = 0.05", "refuted_from = 0", BadSetting, "above 0"),
        ("rounds = 4,", "", BadSetting, "`rounds` in .* effort is missing"),
        ("rounds = 4", "rounds = 0", BadSetting, r"`rounds` in .* number 1 effort is 0"),
        ("rounds = 4", 'rounds = "many"', BadSetting, r"`effort.rounds` in .* number 1 is"),
        ("effort       =", "efforts =", NotFound, "efforts"),
        (
            'run          = { "model.name"',
            'run = "nameless"\nrest = { "model.name"',
            BadSetting,
            r"`run` in .* number 1 is .*nameless",
        ),
    ],
)
def test_each_fault_has_its_name_and_place(tmp_path: Path, old: str, new: str, error: type[Misuse], said: str) -> None:
    assert old in GOOD
    path = tmp_path / "quick.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(error, match=said):
        read_audit_plan(path)


@pytest.mark.parametrize("name", quick(audit_plan_names(), "quick", "membership"))
def test_runs_of_the_shelf_have_settings_that_plans_know(name: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("lake\nriver", "utf-8")
    for trial in read_audit_plan(name).trials:
        for profile in trial.profiles:
            listed = {"vocabulary.file": str(words)} if trial.run.get("vocabulary.source") == "file" else {}
            settled = whole_plan(None, fitting({**trial.run, **listed}, profile))
            assert attack_called(trial.attack).reads(settled.model.name)


# ---- the regulators' questions ---------------------------------------------------------------------------------------------


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
