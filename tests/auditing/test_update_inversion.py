"""A party reads the sum out of how the shared weights move: documents behind plain steps, signs and links behind Adam's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.update_inversion import gradient_behind
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.reconstruction_scores import EXACT, LINKED, LINKS_FOUND, PRECISION, RECALL, TOGETHER
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.views import AdversaryView
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.models.gradients import OPTIMISERS, optimiser_moments, optimiser_step
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from .conftest import Recorded, adversary

EFFORT = {"rounds": 3, "steps": 2}


def trained(path: Path, parties: Mapping[str, Corpus], **model: Any) -> RunFolder:
    tables = {
        "profile": "open",
        "model": {"name": "prodlda", "n_topics": 5, "hidden": 64, "batch": 4, **model},
        "training": {"rounds": 3, "held_out": 0.1},
        "vocabulary": {"min_documents": 1, "max_share": 1.0},
    }
    folder = begin(path / "run", plan_from_tables(tables, "a test"), parties, with_content=True)
    train(folder, Unwatched())
    return folder


def eyes(folder: RunFolder) -> AdversaryView:
    return view_of(folder, adversary("party"), attack_called("update_inversion"), EFFORT["rounds"])


def read(folder: RunFolder, *, chance: bool = False) -> Score:
    attack, view = attack_called("update_inversion"), eyes(folder)
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, EFFORT["rounds"]).values())
    return attack.judge(attack.attack(of_chance(view, 1) if chance else view, EFFORT), truth)


def share(judged: Score, measure: str) -> float:
    worth = judged.measures[measure]
    assert isinstance(worth, Proportion)
    return worth.hits / worth.of if worth.of else 0.0


def test_a_party_sees_nothing_but_its_own_questions(recorded: Recorded) -> None:
    view = eyes(recorded("masked", 25))
    assert set(view.seen) == {"request"}
    assert {message.receiver for message in view.messages("request")} == {"centre"}


def test_plain_steps_give_whole_documents_away(tmp_path: Path, parties: Mapping[str, Corpus]) -> None:
    judged = read(trained(tmp_path, parties, optimiser="sgd", learning_rate=0.05))
    found = judged.measures[EXACT]
    assert isinstance(found, Proportion)
    assert (found.hits >= 36, found.of) == (True, 40)
    assert min(share(judged, PRECISION), share(judged, RECALL)) >= 0.95


def test_adams_first_step_gives_words_and_links_away(recorded: Recorded) -> None:
    """Also behind masks: what is opened is applied to weights that every party gets."""
    judged = read(recorded("masked", 25))
    assert share(judged, PRECISION) == 1.0
    assert share(judged, RECALL) >= 0.99
    assert share(judged, LINKED) >= 0.9
    assert share(judged, LINKS_FOUND) >= 0.9
    assert share(judged, TOGETHER) > 0.2


def test_weights_in_a_random_order_give_nothing_away(recorded: Recorded) -> None:
    chance = read(recorded("masked", 25), chance=True)
    assert share(chance, EXACT) == share(chance, TOGETHER) == share(chance, LINKED) == 0.0


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_the_gradient_behind_a_step_is_within_its_error(optimiser: str) -> None:
    """The project's own optimiser makes the step."""
    rng = np.random.default_rng(8)
    weights = rng.normal(0, 0.1, 4000).astype(np.float32)
    gradient = (rng.normal(size=4000) * 10.0 ** rng.uniform(-6, -3, 4000)).astype(np.float32)
    after, _ = optimiser_step(weights, gradient, 1.0, optimiser_moments(optimiser, weights), 1, 5e-3, 0.9)
    undone = gradient_behind(weights, after, optimiser, 5e-3)
    off = np.abs(undone.values - gradient)
    assert (off <= 3 * undone.errors).mean() > 0.99
    assert np.sum(undone.errors < 0.1 * np.abs(gradient)) > 1000
    assert undone.blur == np.median(undone.errors[undone.values != 0] / np.abs(undone.values[undone.values != 0]))
