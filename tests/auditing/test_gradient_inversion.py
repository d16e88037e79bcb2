"""Documents out of gradients, by closed forms and by matching: as many as there should be, and none by chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.auditing.attack import Score
from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.gradient_inversion import decoder_gradient
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.recorded import questions_of, view_of
from securetm.federation.folder import RunFolder
from securetm.models.neural.cpu_kernels import FusedKernels, bags

from .conftest import Recorded, adversary
from .tried import scored

EFFORT = {"rounds": 3, "documents": 1_000_000}  # more than masked answers, which say any number, can seem to hold together


def tried(name: str, folder: RunFolder, *, chance: bool = False) -> Score:
    return scored(folder, name, EFFORT, adversary(), int(chance))


def test_the_control_changes_vectors_and_nothing_else(recorded: Recorded) -> None:
    attack = attack_called("gradient_inversion")
    for profile in ("open", "masked"):
        view = view_of(recorded(profile, 25), adversary(), attack, 2)
        drawn = of_chance(view, 5)
        assert drawn.seen["request"] == view.seen["request"]
        channel = "answer" if profile == "open" else "sealed"
        changed = 0
        for before, after in zip(view.seen[channel], drawn.seen[channel], strict=True):
            assert len(after.content) == len(before.content)
            assert (after.serial, after.sender) == (before.serial, before.sender)
            changed += after.content != before.content
        assert changed == 2 * 5
        assert of_chance(view, 5).seen[channel] == drawn.seen[channel]
        assert of_chance(view, 6).seen[channel] != drawn.seen[channel]


def test_the_judge_knows_what_took_part(recorded: Recorded) -> None:
    """Each batch has the size that the answers say, and is of the documents that its party trains on."""
    folder = recorded("open", 20)
    attack = attack_called("gradient_inversion")
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 3).values())
    assert {counts.shape[0] for counts in truth.batches.values()} == {20}
    for name in folder.members:
        trained_on = {row.tobytes() for row in truth.held[name].toarray().astype(np.int64)}
        drawn = [counts for (_, party), counts in truth.batches.items() if party == name]
        assert len(drawn) == 3
        assert {row.tobytes() for counts in drawn for row in counts.toarray().astype(np.int64)} <= trained_on
    serial = next(iter(truth.batches))[0]
    assert truth.batch(serial, "").shape == (100, len(truth.vocabulary))


# ---- by matching -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
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
