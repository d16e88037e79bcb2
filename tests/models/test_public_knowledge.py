"""Every model that is a table of topics can begin from public ones, keeps them, and does not send them to parties."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.contracts import State, TopicModel
from securetm.models import MODELS
from securetm.models.public_knowledge import FREQUENCIES, TOPICS, VECTORS, PublicKnowledge, public_fits, without_public
from securetm.models.stored_model import StoredModel, write_model
from securetm.testing.few_documents import WORDS, some_documents
from securetm.testing.model_laws import VOCABULARY, one_round, split, sums_to_one

K = 3
TABLES = ("lda", "lda-matched", "lda-vi", "moments", "sentence-lda", "nmf", "fednmf")
KEPT = ("lda", "lda-vi", "sentence-lda", "nmf")  # whose answers may be noised


def public() -> PublicKnowledge:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(WORDS, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(WORDS, 0.3), K) + 1e-6
    return PublicKnowledge(shares / shares.sum(axis=1, keepdims=True), vectors.astype(np.float32), np.full(WORDS, 1 / WORDS))


def started(name: str) -> tuple[TopicModel, State]:
    model = MODELS.load(name)(n_topics=K)
    return model, model.started(VOCABULARY, public(), np.random.default_rng(0))


@pytest.mark.parametrize("name", TABLES)
def test_it_begins_at_public_topics_and_learns_from_there(name: str) -> None:
    model, state = started(name)
    assert model.starts_public
    np.testing.assert_array_equal(model.topics(state).argmax(axis=1), public().topics.argmax(axis=1))
    after = one_round(model, state, split(some_documents(14, seed=5)), {})
    sums_to_one(model.topics(after))
    assert model.fits(after, WORDS)


@pytest.mark.parametrize("name", TABLES)
def test_parties_get_what_they_would_get_without_it(name: str) -> None:
    model, state = started(name)
    plain = model.for_party(model.start(VOCABULARY, np.random.default_rng(0)), "")
    sent = model.for_party(state, "")
    assert {n: (a.shape, a.dtype) for n, a in sent.items()} == {n: (a.shape, a.dtype) for n, a in plain.items()}


@pytest.mark.parametrize("name", KEPT)
def test_a_stored_model_keeps_it(name: str, tmp_path: Path) -> None:
    model, state = started(name)
    write_model(tmp_path / "a.safetensors", model, state, VOCABULARY)
    _, read, _ = StoredModel.open(tmp_path / "a.safetensors").model(lambda _: type(model))
    found = PublicKnowledge.kept_in(read)
    assert found is not None
    np.testing.assert_array_equal(found.topics, public().topics)
    np.testing.assert_array_equal(found.vectors, public().vectors)


def damaged(name: str, value: Any) -> State:
    return {**public().arrays(), name: value}


@pytest.mark.parametrize(
    "state",
    [
        damaged(TOPICS, public().topics[:2]),
        damaged(TOPICS, np.zeros((K, WORDS))),
        damaged(VECTORS, public().vectors.astype(np.float64)),
        damaged(VECTORS, public().vectors * np.float32(9)),
        damaged(VECTORS, np.full((WORDS, 4), np.nan, dtype=np.float32)),
        damaged(VECTORS, np.zeros((WORDS, 65), dtype=np.float32)),
        damaged(FREQUENCIES, np.zeros(WORDS)),
        {VECTORS: public().vectors},
    ],
)
def test_what_is_no_public_knowledge_does_not_fit(state: State) -> None:
    assert not public_fits(state, K, WORDS)
    assert public_fits(public().arrays(), K, WORDS)
    assert not without_public(state)
