"""The laws of every topic model: shapes, finite numbers, repeatability; a federation learns what one corpus would teach.

Subclass `ModelLaws` and give `model`. No law says how good the topics are; benches measure that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum, blocks_of
from securetm.contracts import Answer, Array, Needs, State, TopicModel
from securetm.testing.few_documents import WAYS, WORDS, FewDocuments, answered, in_small_blocks, some_documents

VOCABULARY = tuple(f"word{w}" for w in range(WORDS))


def one_round(model: TopicModel, state: State, parties: Mapping[str, Any], memories: dict[str, dict[str, Array]]) -> State:
    """A round with plain sums: each party answers about the state sent to it, the answers are added, the model is updated."""
    parts: dict[str, Mapping[str, Array]] = {}
    for name, documents in parties.items():
        query = model.query(model.for_party(state, name))
        clipped_sum = ClippedRowSum(query.terms)
        query.answer(documents, clipped_sum, memories.setdefault(name, {}), np.random.default_rng(0))
        parts[name] = clipped_sum.blocks()
    if query.terms.needs is Needs.EACH:
        return model.update(state, Answer(None, parts, tuple(parts)))
    total = {block.name: np.sum([blocks[block.name] for blocks in parts.values()], axis=0) for block in query.terms.layout}
    return model.update(state, Answer(total, {}, tuple(parts)))


def trained(model: TopicModel, parties: Mapping[str, Any], rounds: int = 4, seed: int = 0) -> State:
    """The state after a few rounds over everybody's documents."""
    state, memories = model.start(VOCABULARY, np.random.default_rng(seed)), dict[str, dict[str, Array]]()
    for _ in range(rounds):
        state = one_round(model, state, parties, memories)
    return state


def split(documents: Any, ends: Sequence[int] = (3, 4)) -> dict[str, Any]:
    """The same documents over three parties of unequal size."""
    parts = np.array_split(np.arange(len(documents)), np.array(ends))
    return {f"party {n}": documents.select(part) for n, part in enumerate(parts)}


def sums_to_one(rows: Array) -> None:
    """Every row is a distribution."""
    assert np.all(np.isfinite(rows))
    assert np.all(rows >= 0)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-5)


class ModelLaws:
    """Laws of one model, over a few documents that all take part in every round."""

    tolerance = 1e-9  # between the parameters of a federation and of one corpus

    @pytest.fixture
    def model(self) -> TopicModel:
        raise NotImplementedError("a subclass gives the model")

    @pytest.fixture
    def documents(self) -> Any:
        return some_documents(14, seed=5)

    def test_it_has_a_name(self, model: TopicModel) -> None:
        assert model.name
        assert model.name == model.name.strip().lower()

    def test_state_is_plain_arrays(self, model: TopicModel, documents: Any) -> None:
        for state in (model.start(VOCABULARY, np.random.default_rng(0)), trained(model, split(documents))):
            assert all(isinstance(name, str) and isinstance(array, np.ndarray) for name, array in state.items())
            assert all(array.dtype != object for array in state.values())
            assert all(np.all(np.isfinite(array)) for array in state.values())

    def test_topics_and_mixtures_are_distributions(self, model: TopicModel, documents: Any) -> None:
        for state in (model.start(VOCABULARY, np.random.default_rng(0)), trained(model, split(documents))):
            topics, mixtures = model.topics(state), model.infer(state, documents)
            sums_to_one(topics)
            sums_to_one(mixtures)
            assert topics.shape[1] == len(VOCABULARY)
            assert mixtures.shape == (len(documents), topics.shape[0])

    def test_likelihoods_are_of_each_document(self, model: TopicModel, documents: Any) -> None:
        state = trained(model, split(documents))
        one_word_each = FewDocuments(np.eye(len(VOCABULARY), dtype=np.int64), VOCABULARY)  # one half of each is empty
        for some in (documents, one_word_each):
            seen, unseen = some.halves(1)
            likelihood = model.log_likelihood(state, seen, unseen)
            assert likelihood.shape == (len(some),)
            assert np.all(np.isfinite(likelihood))
            assert np.all(likelihood <= 0)
            assert np.all(likelihood[np.asarray(unseen.counts.sum(axis=1)).ravel() == 0] == 0)

    def test_a_document_is_judged_alone(self, model: TopicModel, documents: Any) -> None:
        state = trained(model, split(documents))
        alone = np.vstack([model.infer(state, documents.select(np.array([i]))) for i in range(len(documents))])
        np.testing.assert_allclose(alone, model.infer(state, documents), atol=1e-5)

    def test_deterministic(self, model: TopicModel, documents: Any) -> None:
        first, second = (trained(model, split(documents)) for _ in range(2))
        assert sorted(first) == sorted(second)
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])

    def test_the_seed_matters(self, model: TopicModel) -> None:
        first, second = (model.start(VOCABULARY, np.random.default_rng(seed)) for seed in range(2))
        assert any(np.any(first[name] != second[name]) for name in first)

    def test_update_leaves_the_old_state_alone(self, model: TopicModel, documents: Any) -> None:
        state = model.start(VOCABULARY, np.random.default_rng(0))
        before = {name: array.copy() for name, array in state.items()}
        one_round(model, state, split(documents), {})
        for name, array in before.items():
            np.testing.assert_array_equal(state[name], array)

    def test_training_moves_the_topics(self, model: TopicModel, documents: Any) -> None:
        start = model.topics(model.start(VOCABULARY, np.random.default_rng(0)))
        assert np.any(model.topics(trained(model, split(documents))) != start)

    def test_federated_is_concatenated(self, model: TopicModel, documents: Any) -> None:
        federated, together = trained(model, split(documents)), trained(model, {"all": documents})
        for name in together:
            np.testing.assert_allclose(federated[name], together[name], atol=self.tolerance, rtol=self.tolerance)

    def test_shards_and_workers_change_no_byte(self, model: TopicModel, documents: Any) -> None:
        cut, found = in_small_blocks(documents), []
        for way in WAYS:
            state, memory = model.start(VOCABULARY, np.random.default_rng(0)), dict[str, Array]()
            for _ in range(3):
                query = model.query(model.for_party(state, "party 0"))
                if query.terms.needs is Needs.EACH:
                    return
                total = blocks_of(answered(query, cut, memory, way), query.terms)
                state = model.update(state, Answer(total, {}, ("party 0",)))
            found.append({name: array.tobytes() for name, array in state.items()})
        assert found[1:] == found[:-1]

    def test_a_training_goes_on_from_a_state(self, model: TopicModel, documents: Any) -> None:
        state = model.shared(trained(model, split(documents)))
        begun = [model.going_on(state, VOCABULARY, np.random.default_rng(seed)) for seed in (3, 3)]
        for name, array in begun[0].items():
            np.testing.assert_array_equal(array, begun[1][name])
        assert model.fits(begun[0], len(VOCABULARY))
        np.testing.assert_allclose(model.topics(begun[0]), model.topics(state), atol=self.tolerance)
        after = one_round(model, model.weighing_earlier(begun[0], 0.5), split(documents), {})
        assert model.fits(after, len(VOCABULARY))
        sums_to_one(model.topics(after))

    def test_what_travels_is_enough_to_ask(self, model: TopicModel, documents: Any) -> None:
        state = trained(model, split(documents))
        travels = model.for_party(state, "party 0")
        assert set(travels) <= set(state) | {"asked"}
        assert model.query(travels).terms.layout == model.query(model.for_party(state, "party 0")).terms.layout
