"""FedNMF: its gradients beside torch's, safeguards, memory, and what it may not be used for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from securetm.contracts import Answer, Array, Memory, State, Unit
from securetm.models.fednmf import CriticShape, FedNMF, WordRows, smile
from securetm.models.gradients import SERVER_STEPS
from tests.models.trained_by_hand import sum_of

from .test_nmf import VOCABULARY, WORDS, planted

TOPICS, TAU = 4, 0.5


def small(**settings: Any) -> FedNMF:
    return FedNMF(**{"n_topics": 3, "local_epochs": 2, "batch": 8, **settings})


def answered(model: FedNMF, state: State, documents: Any, memory: Memory, seed: int = 0) -> dict[str, Array]:
    return dict(sum_of(model.query(model.for_party(state, "one")), documents, memory, rng=np.random.default_rng(seed)).blocks())


# ---- the mutual information ------------------------------------------------------------------------------------------


def by_torch(shape: CriticShape, flat: torch.Tensor, words: torch.Tensor, topics: torch.Tensor) -> torch.Tensor:
    """The bound of equation 2 as it is written, pair by pair; a joint score counts up to tau."""
    layers, first = {}, 0
    for name, size in shape.parts:
        layers[name] = flat[first : first + int(np.prod(size))].reshape(size)
        first += int(np.prod(size))
    count = len(words)
    scores = {}
    for i in range(count):
        for j in range(count):
            one = torch.relu(words[i] @ layers["words"] + topics[j] @ layers["topics"] + layers["first_bias"])
            two = torch.relu(one @ layers["inner"] + layers["second_bias"])
            scores[i, j] = (two @ layers["out"] + layers["out_bias"])[0]
    apart = [torch.clamp(torch.exp(score), np.exp(-TAU), np.exp(TAU)) for (i, j), score in scores.items() if i != j]
    joint = [torch.clamp(scores[i, i], max=TAU) for i in range(count)]
    return torch.stack(joint).mean() - torch.log(torch.stack(apart).sum() / (count * (count - 1)))


def test_gradients_are_those_of_autograd() -> None:
    documents, rng = planted(12), np.random.default_rng(3)
    shape = CriticShape(WORDS, TOPICS)
    flat = 3 * shape.fresh(rng) + rng.normal(0, 0.05, shape.size).astype(np.float32)  # some scores beyond tau, some within
    topics = rng.random((5, TOPICS)).astype(np.float32)
    model = FedNMF(n_topics=TOPICS, weighting="counts")
    held = model.read(documents, WORDS)
    rows = np.array([3, 1, 7, 2, 10])
    critic, pull = smile(shape, flat, WordRows(held.bags, held.bags.counts.astype(np.float32), rows), topics, TAU)
    leaves = [torch.tensor(each.astype(float), requires_grad=True) for each in (flat, topics)]
    value = by_torch(shape, leaves[0], torch.tensor(documents.counts.toarray()[rows].astype(float)), leaves[1])
    value.backward()
    assert leaves[0].grad is not None
    assert leaves[1].grad is not None
    assert np.abs(leaves[1].grad.numpy()).max() > 1e-3
    np.testing.assert_allclose(critic, leaves[0].grad.numpy(), atol=1e-5)
    np.testing.assert_allclose(pull, leaves[1].grad.numpy(), atol=1e-5)


def test_the_squared_distances_step_is_that_of_autograd() -> None:
    documents, rng = planted(10), np.random.default_rng(4)
    model = FedNMF(n_topics=3, mutual_information=0.0, learning_rate=1e-3, weighting="counts")
    weights = model.start(VOCABULARY, rng)["weights"].copy()
    held, rows, before = model.read(documents, WORDS), np.array([0, 4, 9]), rng.random((3, 3)).astype(np.float32)
    topics, found = (torch.tensor(each.astype(float), requires_grad=True) for each in (weights.reshape(3, -1), before))
    apart = torch.tensor(documents.counts.toarray()[rows].astype(float)) - found @ topics
    (apart.square().sum() / 3).backward()
    after = before.copy()
    model.step(weights, WordRows(held.bags, held.bags.counts.astype(np.float32), rows), after)
    for moved, leaf in ((weights.reshape(3, -1), topics), (after, found)):
        assert leaf.grad is not None
        expected = np.maximum(leaf.detach().numpy() - 1e-3 * leaf.grad.numpy(), 0)
        np.testing.assert_allclose(moved, expected, atol=1e-6)


@pytest.mark.parametrize(("scale", "information"), [(1.0, 100.0), (1e4, 0.0), (1e18, 100.0)])
def test_numbers_stay_finite(scale: float, information: float) -> None:
    """Steps as long as can be set, and weights as a coordinator may choose them."""
    settings = {"weighting": "counts", "learning_rate": 1e9, "critic_rate": 1.0, "mutual_information": information}
    model, documents, memory = small(**settings), planted(40), Memory()
    state = model.start(VOCABULARY, np.random.default_rng(0))
    state = {**state, "weights": np.float32(scale) * (state["weights"] - np.float32(0.02))}
    for number in range(4):
        state = model.update(state, Answer(answered(model, state, documents, memory, number)))
        assert np.isfinite(state["weights"]).all()
        assert np.isfinite(memory["fednmf/weights"]).all()
        assert (memory["fednmf/weights"] >= 0).all()
    assert np.isfinite(model.log_likelihood(state, documents, documents)).all()


# ---- rounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", SERVER_STEPS)
def test_the_mean_difference_weighs_parties_by_documents(server: str) -> None:
    model, documents = small(server=server), planted(30)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    parts = [answered(model, state, documents.select(np.arange(*part)), {}) for part in ((0, 20), (20, 30))]
    after = model.update(state, Answer({name: parts[0][name] + parts[1][name] for name in parts[0]}))
    means = [part["difference"] / part["documents"][0] for part in parts]
    expected = model.server_step(state, (20 * means[0] + 10 * means[1]) / 30)["weights"]
    topics = model.n_topics * WORDS
    np.testing.assert_allclose(after["weights"][:topics], np.maximum(expected[:topics], 0), atol=1e-5)
    np.testing.assert_allclose(after["weights"][topics:], expected[topics:], atol=1e-5)
    assert (after["weights"][:topics] >= 0).all()
    assert model.fits(after, WORDS)
    assert set(model.for_party(after, "one")) == {"weights", "step"}


def test_topic_weights_stay_in_the_memory_and_go_on_from_there() -> None:
    model, documents, memory = small(), planted(30), Memory()
    state = model.start(VOCABULARY, np.random.default_rng(0))
    first = answered(model, state, documents.select(np.arange(20)), memory)
    kept = dict(memory)
    again = answered(model, state, documents.select(np.arange(20)), Memory(kept))
    assert not np.array_equal(first["difference"], again["difference"])
    answered(model, state, documents.select(np.arange(10, 30)), memory)
    assert len(memory["fednmf/names"]) == len(set(memory["fednmf/names"])) == 30
    place = dict(zip(memory["fednmf/names"], memory["fednmf/weights"], strict=True))
    for name, weights in zip(kept["fednmf/names"][:10], kept["fednmf/weights"][:10], strict=True):
        np.testing.assert_array_equal(place[name], weights)  # they took no part, and are as they were


def test_without_mutual_information_no_critic_travels() -> None:
    state = small(mutual_information=0.0).start(VOCABULARY, np.random.default_rng(0))
    assert len(state["weights"]) == 3 * WORDS
    assert small().query(small().start(VOCABULARY, np.random.default_rng(0))).terms.unit is Unit.PARTY
