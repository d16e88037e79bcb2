"""NMF and FedNMF: what a document gives beside the definition and torch, what sums teach, what noise leaves, forged states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.optimize import nnls

from securetm.contracts import Answer, Array, Memory, State, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.fednmf import CriticShape, FedNMF, WordRows, smile
from securetm.models.gradients import SERVER_STEPS
from securetm.models.mixed_topics import Bags
from securetm.models.nmf import NMF, DocumentProducts, lengths_of
from securetm.models.noisy_counts import likely_totals
from securetm.testing.query_laws import rows_of

from ..trained_by_hand import sum_of

WORDS = 30
VOCABULARY = tuple(f"w{v}" for v in range(WORDS))


def planted(documents: int = 120, seed: int = 0) -> Corpus:
    """Documents of one of three topics, each with ten words of its own."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.02, (documents, WORDS))
    for i in range(documents):
        t = i % 3
        counts[i, 10 * t : 10 * t + 10] += rng.poisson(1.0, 10)
    return Corpus(HeldDocuments(sparse.csr_array(counts), VOCABULARY, np.arange(documents, dtype=np.uint64)))


def sums(model: NMF, state: State, documents: Any, radius: float = np.inf) -> dict[str, Array]:
    return dict(sum_of(model.query(state), documents, radius=radius).blocks())


def after(model: NMF, rounds: int, documents: Any, seed: int = 0) -> State:
    state = model.start(documents.vocabulary, np.random.default_rng(seed))
    for _ in range(rounds):
        state = model.update(state, Answer(sums(model, state, documents)))
    return state


def weighed(model: NMF, counts: Array) -> Array:
    """The documents as the model weighs their words, by numpy."""
    if model.weighting == "log":
        return np.log1p(counts)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True) if model.weighting == "l2" else counts


# ---- what a document gives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["counts", "log", "l2"])
def test_topic_weights_are_the_nearest_ones(weighting: str) -> None:
    model, documents = NMF(n_topics=4, weighting=weighting, passes=1000), planted(20)
    state = after(model, 3, documents)
    topics, rows = model.factor(state), weighed(model, documents.counts.toarray().astype(float))
    found = model.factored(topics, model.read(documents, WORDS))
    expected = np.array([nnls(topics.T, row)[0] for row in rows])
    np.testing.assert_allclose(found.topics, expected, atol=1e-5)
    np.testing.assert_allclose(found.losses, np.square(rows - expected @ topics).sum(axis=1) / 2, atol=1e-6)


def test_a_row_is_the_two_products() -> None:
    model, documents = NMF(n_topics=4, weighting="counts"), planted(6)
    state = after(model, 2, documents)
    weights = model.factored(model.factor(state), model.read(documents, WORDS)).topics
    for row, h, a in zip(rows_of(model.query(state), documents), weights, documents.counts.toarray(), strict=True):
        np.testing.assert_allclose(row, np.concatenate([np.outer(h, h).ravel(), np.outer(h, a).ravel()]), atol=1e-12)


def test_a_row_of_equal_length_has_the_words_by_themselves() -> None:
    model, documents = NMF(n_topics=4, alone=0.5, equal_rows=True), planted(6)
    state = after(model, 2, documents)
    weights = model.factored(model.factor(state), model.read(documents, WORDS)).topics
    for row, h, a in zip(
        rows_of(model.query(state), documents), weights, weighed(model, documents.counts.toarray()), strict=True
    ):
        whole = np.concatenate([np.outer(h, h).ravel(), np.outer(h, a).ravel(), 0.5 * a])
        np.testing.assert_allclose(row, whole / np.linalg.norm(whole), atol=1e-12)


@pytest.mark.parametrize("weighting", ["counts", "log", "l2"])
def test_rows_of_equal_length_keep_to_their_bound(weighting: str) -> None:
    """Also under topics that a coordinator chose, and of documents without a word."""
    model, documents = NMF(n_topics=5, weighting=weighting, alone=0.5, equal_rows=True), planted(40)
    empty = Corpus(HeldDocuments(sparse.csr_array((1, WORDS), dtype=np.int64), VOCABULARY, np.zeros(1, np.uint64)))
    for forged in (np.full((5, WORDS), 1e300), np.full((5, WORDS), np.nan), np.zeros((5, WORDS)), np.eye(5, WORDS) * 1e-300):
        query = model.query({**model.start(VOCABULARY, np.random.default_rng(0)), "weights": forged})
        lengths = np.linalg.norm(rows_of(query, documents), axis=1)
        np.testing.assert_allclose(lengths, 1.0, atol=1e-9)
        assert (lengths <= query.terms.l2).all()
        assert query.terms.l2 < 1.001
        np.testing.assert_array_equal(rows_of(query, empty), 0.0)


@pytest.mark.parametrize("passes", [1, 50])
def test_a_row_of_length_one_has_a_bound_of_its_own(passes: int) -> None:
    """Also under topics that a coordinator chose: alike, huge, negative, not finite."""
    model, documents = NMF(n_topics=5, passes=passes), planted(40)
    alike = np.tile(np.arange(1.0, WORDS + 1), (5, 1))
    mixed = np.where(np.arange(WORDS) % 2, 1e300, -1.0) * np.ones((5, 1))
    for forged in (alike, mixed, np.full((5, WORDS), np.nan), np.full((5, WORDS), np.inf), np.zeros((5, WORDS))):
        query = model.query({**model.start(VOCABULARY, np.random.default_rng(0)), "weights": forged})
        lengths = np.linalg.norm(rows_of(query, documents), axis=1)
        assert (lengths <= query.terms.l2).all()
        assert query.terms.l2 < 1.5


@pytest.mark.parametrize("settings", [{}, {"alone": 0.5}, {"alone": 2.0, "equal": True}])
def test_a_persons_row_is_measured_whole(settings: dict[str, Any]) -> None:
    model, documents = NMF(n_topics=3, weighting="counts"), planted(9)
    state = after(model, 2, documents)
    rows = DocumentProducts(model.factored(model.factor(state), model.read(documents, WORDS)), WORDS, **settings)
    owners = np.array([2, 0, 2, 1, 0, 0, 2, 1, 5])
    lengths = [np.linalg.norm(rows.gradient((owners == name).astype(float))) for name in (0, 1, 2, 5)]
    np.testing.assert_allclose(rows.norms(owners), lengths, rtol=1e-12)


def test_the_length_of_a_very_long_document_is_exact() -> None:
    words, topics = 200_000, 20
    bags = Bags(np.array([0, words]), np.arange(words), np.ones(words, dtype=np.int64))
    document = bags, np.full(words, 1.1), np.full((1, topics), 0.3), np.ones(1)
    found = lengths_of(np.array([0]), np.array([0, 1]), *document, topics, words)[0]
    exact = np.sqrt(words * topics * (1.1 * 0.3) ** 2 + topics**2 * 0.3**4)
    assert found == pytest.approx(exact, rel=1e-14)


# ---- what sums teach -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"weighting": "counts"}, NMF.budget_defaults])
def test_planted_topics_are_found(settings: dict[str, Any]) -> None:
    model = NMF(n_topics=3, **settings).fit(planted(), epochs=20)
    heaviest = {frozenset(int(word[1:]) // 10 for word in words) for words in model.top_words(8)}
    assert heaviest == {frozenset([0]), frozenset([1]), frozenset([2])}
    shares = model.transform(planted(30, seed=9))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares.max(axis=1) > 0.8).mean() > 0.9


# ---- noise and forgeries ---------------------------------------------------------------------------------------------


def titles(documents: int, seed: int) -> tuple[Corpus, Corpus]:
    """Texts of four words on average, each mostly of one of four topics, and further words of each; few words are frequent."""
    rng, many = np.random.default_rng(seed), 200
    shares = np.random.default_rng(0).gamma(0.3, 1.0, (4, many)) / np.arange(1, many + 1) ** 0.8
    shares += 0.2 * shares.mean(axis=0)
    shares /= shares.sum(axis=1, keepdims=True)
    topics, names = rng.integers(4, size=documents), tuple(f"w{v}" for v in range(many))
    seen, further = (np.array([rng.multinomial(1 + rng.poisson(3), shares[z]) for z in topics]) for _ in range(2))
    keys = np.arange(documents, dtype=np.uint64)
    held = [HeldDocuments(sparse.csr_array(counts), names, keys) for counts in (seen, further)]
    return Corpus(held[0]), Corpus(held[1])


def noised(model: NMF, rounds: int, documents: Corpus, noise: float) -> State:
    """After so many rounds that share a budget: `noise` is the deviation where one round has it all, for a clip of 1."""
    state, rng = model.start(documents.vocabulary, np.random.default_rng(0)), np.random.default_rng(7)
    for _ in range(rounds):
        found, deviation = sums(model, state, documents, radius=1.0), noise * np.sqrt(rounds)
        total = {name: block + rng.normal(0, deviation, block.shape) for name, block in found.items()}
        state = model.update(state, Answer(total, deviation=deviation))
    return state


@pytest.mark.parametrize("noise", [0.6, 3.73])  # epsilon 8 and 1, at delta 1e-5
def test_few_short_texts_behind_noise_are_predicted_about_as_well_as_by_noised_frequencies(noise: float) -> None:
    """With the settings and rounds of a budget. Frequencies get the whole budget for one sum of words in rows of length 1."""
    documents, model = titles(1_500, seed=1)[0], NMF(n_topics=4, **NMF.budget_defaults)
    rows = documents.counts.toarray() / np.linalg.norm(documents.counts.toarray(), axis=1, keepdims=True)
    told = rows.sum(axis=0) + np.random.default_rng(8).normal(0, noise, rows.shape[1])
    totals = likely_totals(told, noise)
    seen, unseen = titles(500, seed=2)
    by_frequencies = float((unseen.counts @ np.log(totals / totals.sum())).sum() / unseen.counts.sum())
    state = noised(model, NMF.budget_rounds or NMF.federated_rounds, documents, noise)
    predicted = float(model.log_likelihood(state, seen, unseen).sum() / unseen.counts.sum())
    own = float((unseen.counts @ np.log(model.frequencies(state))).sum() / unseen.counts.sum())
    assert predicted > by_frequencies - 0.02  # a part of each answer goes to topics
    assert predicted > own  # topics that began at random take nothing away


# ---- FedNMF ----------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("deviation", [0.1, 1e6])
def test_noise_leaves_finite_topics(deviation: float) -> None:
    model, documents, rng = NMF(n_topics=3), planted(), np.random.default_rng(1)
    state = model.start(VOCABULARY, rng)
    for _ in range(3):
        total = {name: found + rng.normal(0, deviation, found.shape) for name, found in sums(model, state, documents).items()}
        state = model.update(state, Answer(total, deviation=deviation))
    assert all(np.isfinite(array).all() for array in state.values())
    assert np.isfinite(model.log_likelihood(state, documents, documents)).all()
    if deviation == 0.1:
        shares = model.infer(state, documents)
        assert np.mean([len(set(shares[t::3].argmax(axis=1))) for t in range(3)]) < 2
