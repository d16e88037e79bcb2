"""The audit as a whole: baselines first, verdicts that follow from them, and a protection that is left out is caught."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from securetm.aggregation.masked import round as masked_round
from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called, gradient_inversion
from securetm.auditing.judging import measured
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.record import NOT_REFUTED, NOT_TESTED, REFUTED, Audit
from securetm.auditing.recorded import vocabulary_of
from securetm.auditing.runner import audit
from securetm.auditing.trials import Case
from securetm.auditing.verdicts import judged_alone, with_baseline
from securetm.auditing.views import NotTestable
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake
from securetm.federation.folder import RESULT, begin, reopen
from securetm.federation.simulation.simulation import train
from securetm.federation.store import DamagedStore
from securetm.stages import Unwatched
from securetm.threats import read_threat_model

from .conftest import PARTIES, Recorded, write_plan


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, documents_file: Path) -> Audit:
    """One trial on open and masked."""
    place = tmp_path_factory.mktemp("audit")
    return audit(write_plan(place / "small.toml", documents_file), keep=place / "runs")


def test_the_baseline_breaks_and_the_claim_stands(done: Audit) -> None:
    baseline, claim = done.findings
    assert [(one.run.profile, one.attempt.baseline, one.about.claimed) for one in done.findings] == [
        ("open", True, False),
        ("masked", False, True),
    ]
    assert [one.outcome.verdict for one in done.findings] == [REFUTED, NOT_REFUTED]
    assert baseline.outcome.measured.low > 0.5
    assert claim.outcome.measured.value == 0.0
    assert done.refuted_claims == ()


def test_a_finding_says_what_it_stands_on(done: Audit) -> None:
    claim = done.findings[1]
    assert claim.about.sees == ("request", "vocabulary", "answer", "sealed")
    assert claim.run.setting == "5 parties, 25 documents of each per answer, 3 rounds, n_topics = 5, hidden = 64"
    assert claim.attempt.effort == "2 rounds, 100 documents"
    assert (claim.outcome.measured.hits, claim.outcome.measured.of) == (0, 100)
    assert claim.outcome.chance is not None
    assert claim.outcome.chance.of == 100
    precision = next(more for more in claim.outcome.beside if more.measure == "named words that occur")
    assert precision.value == precision.by_chance
    assert claim.outcome.seconds > 0
    assert "chance" not in claim.outcome.why


def test_what_was_not_tried_is_listed(done: Audit) -> None:
    assert done.not_tried[0] == "what a test leaves out"
    listed = " ".join(done.not_tried)
    assert "sum_inversion" in listed
    assert "the adversary “party” of curious_coordinator" in listed
    assert "with the help of 2 parties" in listed
    assert "gradient_inversion" not in listed


def test_a_mask_that_is_left_out_is_caught(tmp_path: Path, documents_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is the profile's, the protection is gone: sums still add up, and only an attack can tell."""
    monkeypatch.setattr(masked_round, "apply_masks", lambda vector, masks: None)
    found = audit(write_plan(tmp_path / "unmasked.toml", documents_file))
    (broken,) = found.refuted_claims
    assert (broken.run.profile, broken.outcome.verdict) == ("masked", REFUTED)
    assert broken.outcome.measured.low > 0.05


def test_a_run_that_never_ended_is_not_called_damaged(tmp_path: Path, documents_file: Path, recorded: Recorded) -> None:
    folder = tmp_path / "run"
    shutil.copytree(recorded("open", 8, 1).path, folder)
    (folder / "release" / "model.safetensors").unlink()
    plan = write_plan(tmp_path / "ended.toml", documents_file)
    with pytest.raises(Mistake, match="its training has not ended") as told:
        audit(plan, folder)
    assert f"securetm run --resume {folder}" in told.value.advice()
    assert told.value.exit_code == 2
    (folder / "transcript" / "messages.sqlite").unlink()
    with pytest.raises(Mistake, match="holds no round of training"):
        audit(plan, folder)


@pytest.mark.slow
def test_the_baseline_of_a_given_run_is_over_its_own_documents(
    tmp_path: Path, documents_file: Path, recorded: Recorded
) -> None:
    """Of documents that are one word, or two, nothing is read where nothing protects: so nothing is learned under masks."""
    plan, given = write_plan(tmp_path / "own.toml", documents_file), tmp_path / "given"
    held = {name: Corpus.from_strings(["river boat", "boat"] * 35, name=name) for name in PARTIES}
    train(begin(given, recorded("masked", 25).agreement.plan, held, with_content=True), Unwatched())
    found = audit(plan, given, keep=tmp_path / "kept")
    (baseline,) = (tmp_path / "kept").glob("open-of-given-*")
    assert vocabulary_of(reopen(baseline)) == vocabulary_of(reopen(given)) == ("boat", "river")
    assert reopen(baseline).members == PARTIES
    assert [(one.run.profile, one.outcome.verdict) for one in found.findings] == [("open", NOT_REFUTED), ("masked", NOT_TESTED)]
    assert "did not break the baseline" in found.findings[1].outcome.why


@pytest.mark.slow
def test_an_attack_that_fails_ends_no_audit_of_a_given_run(
    tmp_path: Path, documents_file: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(guesses: object, truth: object) -> Score:
        raise ZeroDivisionError

    monkeypatch.setattr(
        gradient_inversion, "GRADIENT_INVERSION", dataclasses.replace(gradient_inversion.GRADIENT_INVERSION, judge=fails)
    )
    plan = write_plan(tmp_path / "fails.toml", documents_file)
    found = audit(plan, recorded("masked", 25).path)
    assert [one.outcome.verdict for one in found.findings] == [NOT_TESTED, NOT_TESTED]
    assert "the attack itself failed on this run (ZeroDivisionError)" in found.findings[0].outcome.why
    with pytest.raises(ZeroDivisionError):  # on runs of our own it has to be seen
        audit(write_plan(tmp_path / "own.toml", documents_file, profiles=["open"], batch=2))


def test_an_effort_that_no_attack_asks_for_is_the_plans_fault(tmp_path: Path, documents_file: Path) -> None:
    plan = write_plan(tmp_path / "zeal.toml", documents_file)
    plan.write_text(plan.read_text("utf-8").replace("rounds = 2", "rounds = 2, zeal = 4"), "utf-8")
    with pytest.raises(BadSetting, match=r"`zeal` in .* is 4; it is no effort of this attack"):
        audit(plan)
    plan.write_text(plan.read_text("utf-8").replace("zeal = 4", "shadows = 1000000000"), "utf-8")
    with pytest.raises(BadSetting, match="must be a whole number from 1 to 1,000"):
        audit(plan)


@pytest.mark.parametrize("lost", ["transcript/messages.sqlite", "coordinator/vocabulary.txt", "release/model.safetensors"])
def test_a_run_that_is_not_whole_is_refused_before_anything_is_trained(
    lost: str, tmp_path: Path, documents_file: Path, recorded: Recorded
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(recorded("open", 8, 1).path, folder)
    (folder / RESULT).write_text("{}", "utf-8")
    (folder / lost).unlink()
    with pytest.raises(DamagedStore, match=Path(lost).name):
        audit(write_plan(tmp_path / "whole.toml", documents_file), folder, keep=tmp_path / "kept")
    assert not (folder / lost).exists()
    assert not (tmp_path / "kept").exists()


def test_what_an_attack_cannot_read_is_not_tested(
    tmp_path: Path, documents_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(view: object, effort: object) -> None:
        raise NotTestable("a message from north holds no vector")

    broken = dataclasses.replace(gradient_inversion.GRADIENT_INVERSION, attack=lost)
    monkeypatch.setattr(gradient_inversion, "GRADIENT_INVERSION", broken)
    (finding,) = audit(write_plan(tmp_path / "lost.toml", documents_file, profiles=["open"], batch=2)).findings
    assert (finding.outcome.verdict, finding.outcome.measured.value) == (NOT_TESTED, None)
    assert "holds no vector" in finding.outcome.why


# ---- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "of", "by_chance", "verdict", "said"),
    [
        (100, 100, 0, REFUTED, "the interval begins at 0.96"),
        (12, 100, 0, REFUTED, "begins at 0.06"),
        (9, 100, 0, NOT_REFUTED, "reached 0.09"),
        (0, 100, 0, NOT_REFUTED, "by its interval 0 to 0.03"),
        (0, 0, 0, NOT_TESTED, "nothing to try"),
        (1, 1, 0, NOT_TESTED, "too little was tried"),
        (100, 100, 100, NOT_TESTED, "random numbers reach as much"),
        (12, 100, 7, NOT_TESTED, "does not lie above that of chance"),
    ],
)
def test_the_verdict_follows_from_interval_ceiling_and_chance(
    hits: int, of: int, by_chance: int, verdict: str, said: str
) -> None:
    found = measured("m", "u", Proportion(hits, of), 0.95)
    chance = measured("m", "u", Proportion(by_chance, max(of, 1)), 0.95)
    assert judged_alone(found, chance, 0.05)[0] == verdict
    assert said in judged_alone(found, chance, 0.05)[1]


def test_an_epsilon_is_the_measure_of_its_own_claim_alone() -> None:
    """What epsilon allows says nothing of who sees single answers: there the plan's own bar holds, uncorrected."""
    threats = read_threat_model("private_answers")
    plan = read_audit_plan("counts")
    trial = next(one for one in plan.trials if one.attack == "vocabulary_leakage" and one.threat_model == "private_answers")
    attack, claimed = attack_called(trial.attack), Budget(Unit.DOCUMENT, 8.0, 1e-5)
    unseen = dict.fromkeys(("claims", "run", "posed", "spent", "place"))
    of_epsilon = Case(trial=trial, attack=attack, adversary=threats.adversaries[0], claimed=claimed, tests=4, **unseen)  # type: ignore[arg-type]
    assert attack.allowed is not None
    assert of_epsilon.refuted_from == attack.allowed(trial.measure, claimed)
    assert of_epsilon.confidence == pytest.approx(1 - (1 - trial.confidence) / 4)
    other = dataclasses.replace(of_epsilon, trial=dataclasses.replace(trial, claim="sees only sums"))
    assert (other.refuted_from, other.confidence) == (trial.refuted_from, trial.confidence)


def test_everything_depends_on_the_baseline(done: Audit) -> None:
    broken = tuple(f.judged(REFUTED, "") for f in done.findings)
    assert with_baseline(broken) == broken
    # what it refuted above its own control stays refuted
    held = (broken[0].judged(NOT_REFUTED, ""), broken[1])
    assert [finding.outcome.verdict for finding in with_baseline(held)] == [
        NOT_REFUTED,
        REFUTED,
    ]
    failed = (held[0], broken[1].judged(NOT_REFUTED, ""))
    assert [finding.outcome.verdict for finding in with_baseline(failed)] == [NOT_REFUTED, NOT_TESTED]
