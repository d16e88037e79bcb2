"""What a party sends after training alone: documents behind plain steps, links between words behind Adam, nothing if masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.reconstruction_scores import EXACT, LINKED, LINKS_FOUND, PRECISION, RECALL, TOGETHER
from securetm.auditing.recorded import questions_of, view_of
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import train
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from .conftest import PARTIES, adversary, texts

Made = Callable[..., RunFolder]


@pytest.fixture(scope="module")
def small() -> Mapping[str, Corpus]:
    """Parties with fewer documents than the first layer is wide."""
    return {name: Corpus.from_strings(texts(30, seed), name=name) for seed, name in enumerate(PARTIES)}


@pytest.fixture(scope="module")
def made(small: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Made:
    def run(profile: str = "open", **model: Any) -> RunFolder:
        tables = {
            "profile": profile,
            "model": {"name": "prodlda", "n_topics": 5, "hidden": 100, "batch": 10, "local_epochs": 3, **model},
            "training": {"rounds": 1, "held_out": 0.1},
            "vocabulary": {"min_documents": 1, "max_share": 1.0, "most_candidates": 1000},
        }
        folder = begin(tmp_path_factory.mktemp("run") / "run", plan_from_tables(tables, "a test"), small, with_content=True)
        train(folder, Unwatched())
        return folder

    return run


def read(folder: RunFolder, *, chance: bool = False, answers: int = 5) -> Score:
    attack = attack_called("local_epochs")
    view = view_of(folder, adversary(), attack, 1)
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 1).values())
    return attack.judge(attack.attack(of_chance(view, 1) if chance else view, {"rounds": 1, "answers": answers}), truth)


def share(judged: Score, measure: str) -> float:
    worth = judged.measures[measure]
    assert isinstance(worth, Proportion)
    return worth.hits / worth.of if worth.of else 0.0


def test_plain_steps_over_whole_epochs_still_give_documents_away(made: Made) -> None:
    judged = read(made(optimiser="sgd", learning_rate=0.5))
    assert share(judged, EXACT) >= 0.7
    assert share(judged, PRECISION) == share(judged, RECALL) == 1.0


def test_adam_leaves_words_and_links_and_no_document(made: Made) -> None:
    folder = made()
    judged, chance = read(folder), read(folder, chance=True, answers=1)
    assert share(judged, PRECISION) == share(judged, RECALL) == 1.0
    assert share(judged, LINKED) >= 0.95
    assert share(judged, LINKS_FOUND) >= 0.95
    assert share(judged, TOGETHER) > 0.5
    assert share(judged, EXACT) == 0.0
    assert share(chance, LINKED) == share(chance, TOGETHER) == 0.0


def test_a_masked_difference_is_no_better_than_chance(made: Made) -> None:
    folder = made("masked")
    masked, chance = read(folder, answers=1), read(folder, chance=True, answers=1)
    assert share(masked, EXACT) == share(masked, LINKED) == share(masked, TOGETHER) == 0.0
    assert masked.measures[PRECISION] == chance.measures[PRECISION]
