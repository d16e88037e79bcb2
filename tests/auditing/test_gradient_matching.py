"""Matching a gradient finds what no closed form does, uses the model's own arithmetic, and finds nothing in random numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.auditing.attack import Proportion, Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.gradient_inversion import decoder_gradient
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.reconstruction_scores import EXACT
from securetm.auditing.recorded import questions_of, view_of
from securetm.federation.folder import RunFolder
from securetm.models.neural.cpu_kernels import FusedKernels, bags

from .conftest import Recorded, adversary

DECODER, BOTH = 1, 2


def matched(folder: RunFolder, *, parts: int, answers: int = 1, starts: int = 1, chance: bool = False) -> Score:
    attack = attack_called("gradient_matching")
    view = view_of(folder, adversary(), attack, 1)
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 1).values())
    effort = {"rounds": 1, "answers": answers, "starts": starts, "parts": parts}
    return attack.judge(attack.attack(of_chance(view, 3) if chance else view, effort), truth)


def exact(judged: Score) -> tuple[int, int]:
    worth = judged.measures[EXACT]
    assert isinstance(worth, Proportion)
    return worth.hits, worth.of


def test_the_gradient_that_is_matched_is_the_models_own() -> None:
    """Three documents through the decoder as it trains, and through the form that can be differentiated once more."""
    rng = np.random.default_rng(4)
    counts = rng.poisson(0.3, (3, 40))
    topics, background, kept = rng.normal(size=(5, 40)), rng.normal(size=40), rng.dirichlet(np.ones(5), 3)
    logits, whole = torch.from_numpy(kept @ topics), bags(sparse.csr_array(counts), np.float64)
    real = FusedKernels().reconstruct(whole, logits, torch.from_numpy(background), 0.6).back
    to_topics, to_background = decoder_gradient(
        *(torch.from_numpy(values) for values in (counts.astype(float), kept, topics, background)), 0.6
    )
    np.testing.assert_allclose(to_topics.numpy(), kept.T @ real.numpy(), atol=1e-9)
    scores = np.exp(0.6 * _normal(kept @ topics) + background)
    chances = scores / scores.sum(axis=1, keepdims=True)
    expected = (counts.sum(axis=1, keepdims=True) * chances - counts).sum(axis=0)
    np.testing.assert_allclose(to_background.numpy(), expected, atol=1e-9)


def _normal(logits: np.ndarray) -> np.ndarray:
    return (logits - logits.mean(axis=1, keepdims=True)) / np.sqrt(logits.var(axis=1, keepdims=True) + 1e-5)


def test_the_decoder_alone_gives_two_documents_away(recorded: Recorded) -> None:
    """The closed form for the decoder needs a batch of one."""
    assert exact(matched(recorded("open", 2), parts=DECODER)) == (2, 2)


@pytest.mark.slow
def test_a_first_layer_too_narrow_for_the_closed_form_still_helps(recorded: Recorded) -> None:
    folder = recorded("open", 4, hidden=3)
    closed = attack_called("gradient_inversion")
    view = view_of(folder, adversary(), closed, 1)
    truth = ground_truth_of(folder, questions_of(folder, closed.questions, 1).values())
    solved = closed.judge(closed.attack(view, {"documents": 1000}), truth).measures[EXACT]
    hits, _ = exact(matched(folder, parts=BOTH, answers=5, starts=4))
    assert isinstance(solved, Proportion)
    assert hits > solved.hits


@pytest.mark.slow
def test_a_masked_vector_matches_nobody(recorded: Recorded) -> None:
    assert exact(matched(recorded("masked", 25), parts=BOTH))[0] == 0
