"""What a party reads out of how the shared weights move, and a coordinator out of what a party trained alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attack import Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.update_inversion import gradient_behind
from securetm.auditing.parts.reconstruction_scores import EXACT, LINKED, PRECISION, TOGETHER
from securetm.auditing.recorded import view_of
from securetm.auditing.views import AdversaryView
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.models.gradients import OPTIMISERS, optimiser_moments, optimiser_step

from .conftest import PARTIES, Recorded, adversary, made_run, texts
from .tried import scored, share

EFFORT = {"rounds": 3, "steps": 2}


def eyes(folder: RunFolder) -> AdversaryView:
    return view_of(folder, adversary("party"), attack_called("update_inversion"), EFFORT["rounds"])


def read(folder: RunFolder, *, chance: bool = False) -> Score:
    return scored(folder, "update_inversion", EFFORT, adversary("party"), int(chance))


def test_a_party_sees_nothing_but_its_own_questions(recorded: Recorded) -> None:
    view = eyes(recorded("masked", 25))
    assert set(view.seen) == {"request"}
    assert {message.receiver for message in view.messages("request")} == {"centre"}


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


# ---- after several epochs at home ------------------------------------------------------------------------------------


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
        return made_run(tmp_path_factory.mktemp("run") / "run", small, tables)

    return run


def read_epochs(folder: RunFolder, *, chance: bool = False, answers: int = 5) -> Score:
    return scored(folder, "local_epochs", {"rounds": 1, "answers": answers}, adversary(), int(chance))


def test_a_masked_difference_is_no_better_than_chance(made: Made) -> None:
    folder = made("masked")
    masked, chance = read_epochs(folder, answers=1), read_epochs(folder, chance=True, answers=1)
    assert share(masked, EXACT) == share(masked, LINKED) == share(masked, TOGETHER) == 0.0
    assert masked.measures[PRECISION] == chance.measures[PRECISION]
