"""Audit plans: the shelf is readable and fits its attacks, and every fault of a file has its name and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.plans import audit_plan_names, read_audit_plan
from securetm.auditing.recorded import granted_to
from securetm.auditing.runs import fitting
from securetm.errors import BadSetting, Misuse, NotFound
from securetm.plans.recommend import read_plan
from securetm.resources import data_folder

from ..quick_part import quick
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
            settled = read_plan(None, fitting({**trial.run, **listed}, profile))
            assert attack_called(trial.attack).reads(settled.model.name)
