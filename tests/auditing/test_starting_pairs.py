"""How much epsilon the noised pairs of words show with which a training begins. test_rare_rows.py looks for words in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from securetm.auditing.attack import Estimate, GroundTruth
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.many_runs import GAUSSIAN, CanarySumSource
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.trials import is_for, left_out
from securetm.auditing.views import AdversaryView, PublicFacts
from securetm.plans.agreement import agree
from securetm.plans.recommend import read_plan

from .conftest import PARTIES, Recorded, adversary

WORDS = ("boat", "lake", "river")


def _facts(place: Path, profile: str, **privacy: object) -> PublicFacts:
    (place / "words.txt").write_text("\n".join(WORDS))
    words = {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(place / "words.txt")}
    start = {"training.start": "moments", "training.vectors": "none", "training.rounds": 1}
    settings = {"profile": profile, "model.name": "lda-vi", **start, **words, **privacy}
    return PublicFacts(PARTIES, agree(read_plan(None, settings)))


def _shown(public: PublicFacts) -> Estimate:
    attack, effort = attack_called("many_run_pairs"), {"rounds": 1, "runs": 40_000}
    assert attack.pose is not None
    posed = attack.pose(GroundTruth(WORDS, {}, {}, public=public), effort, np.random.default_rng(0))
    view = AdversaryView(adversary(), public, {"request": ()}, WORDS, question=posed.question)
    truth = GroundTruth(WORDS, {}, {}, confidence=0.9998, public=public, answer=posed.answer)
    found = attack.judge(attack.attack(view, effort), truth).measures[GAUSSIAN]
    assert isinstance(found, Estimate)
    return found


def test_the_noise_of_the_pairs_shows_most_of_the_epsilon_that_it_claims_and_no_more(tmp_path: Path) -> None:
    found = _shown(_facts(tmp_path, "dp-central"))
    assert 0.3 < found.low < 1.0


def test_the_pairs_claim_their_own_share_of_the_budget(tmp_path: Path) -> None:
    few, many = (_facts(tmp_path, "dp-central", **{"training.start_share": share}) for share in (0.1, 0.5))
    claimed = [CanarySumSource.of_start(public, WORDS).claimed.epsilon for public in (few, many)]
    budget = few.agreement.budget
    assert budget is not None
    assert all(one is not None and 0 < one < budget.epsilon for one in claimed)
    assert sorted(claimed) == claimed


def test_a_run_that_was_not_asked_for_pairs_is_not_tried_on_them(recorded: Recorded) -> None:
    given, plan = recorded("masked", 25), read_audit_plan("counts")
    (trial,) = (one for one in plan.trials if one.attack == "rare_pairs")
    assert not is_for(trial, given)
    said = left_out(replace(plan, trials=(trial,)), (), given)
    assert any("(rare_pairs): reads answers to a question that this run did not ask" in one for one in said)
