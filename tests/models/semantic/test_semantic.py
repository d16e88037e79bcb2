"""Semantic topics: the rows of documents, also without a word, noisy sums of them, and topics that follow from embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import Answer, Array, Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.errors import BadSetting, BrokenPromise, Mistake
from securetm.federation.party.documents import PartyDocuments
from securetm.models.public_knowledge import public_knowledge
from securetm.models.semantic import SemanticTopics, likely_centres
from securetm.models.trials import check_rows
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables
from securetm.testing.few_documents import EMBEDDING_SIZE, some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws

from ..trained_by_hand import sum_of

SIZE, WORDS, SUBJECTS = 24, 30, 3


def small(**settings: Any) -> SemanticTopics:
    return SemanticTopics(**{"n_topics": 3, "embedding_size": EMBEDDING_SIZE, **settings})


class TestSemanticTopics(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return small()


class TestItsQuestion(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        model = small()
        return model.query(model.for_party(trained(model, split(some_documents(14, seed=5)), rounds=3), "party 0"))


def test_no_document_and_no_person_changes_a_bit_of_another_ones_row() -> None:
    check_rows(small())


# ---- planted meanings -------------------------------------------------------------------------------------------------------


def planted(documents: int, seed: int = 0) -> tuple[Corpus, Array, Array]:
    """Documents of one of three meanings, each with words of its own; the vectors of the words; each document's meaning."""
    rng = np.random.default_rng(seed)
    meanings = np.eye(SIZE)[:SUBJECTS]
    subject = np.arange(documents) % SUBJECTS
    embeddings = (meanings[subject] + rng.normal(0, 0.1, (documents, SIZE))).astype(np.float32)
    counts = np.zeros((documents, WORDS), dtype=np.int64)
    for d in range(documents):
        np.add.at(counts[d], rng.integers(0, WORDS // SUBJECTS, 6) * SUBJECTS + subject[d], 1)
    vectors = meanings[np.arange(WORDS) % SUBJECTS] + rng.normal(0, 0.15, (WORDS, SIZE))
    words = tuple(f"w{n:02}" for n in range(WORDS))
    held = HeldDocuments(
        sparse.csr_array(counts), words, rng.integers(0, 2**63, documents, dtype=np.uint64), embeddings=embeddings
    )
    return Corpus(held), vectors, subject


def learned(corpus: Any, vectors: Array, deviation: float, rounds: int = 4, seed: int = 1) -> tuple[SemanticTopics, Any]:
    """A model after some rounds whose sums have noise of that deviation in each number."""
    model, rng = SemanticTopics(n_topics=SUBJECTS, embedding_size=SIZE), np.random.default_rng(seed)
    state = model.started(corpus.vocabulary, public_knowledge(vectors, SUBJECTS), np.random.default_rng(0))
    for _ in range(rounds):
        clipped_sum = sum_of(model.query(state), corpus, radius=1.0, rng=rng)
        total = {name: block + rng.normal(0, deviation, block.shape) for name, block in clipped_sum.blocks().items()}
        state = model.update(state, Answer(total, deviation=deviation))
    return model, state


@pytest.mark.parametrize("deviation", [0.0, 10.0])
def test_meanings_and_their_words_are_found_behind_noise(deviation: float) -> None:
    corpus, vectors, subject = planted(600)
    model, state = learned(corpus, vectors, deviation)
    found = model.infer(state, corpus).argmax(axis=1)
    for one in range(SUBJECTS):
        (topic,) = set(found[subject == one])  # all documents of a meaning have one topic
        heaviest = model.topics(state)[topic].argsort()[::-1][:3]
        assert set(heaviest % SUBJECTS) == {one}
    sizes = model.findings(state)["documents_of_topics"]
    assert all(abs(size - 200) < 6 * deviation / np.sqrt(model.of_sizes) + 1 for size in sizes)


def test_centres_behind_noise_are_nearer_to_the_truth_than_sums_and_than_the_public_start() -> None:
    rng, truth = np.random.default_rng(0), np.zeros((1, 400))
    truth[0, :2] = 0.8, 0.6
    public = np.zeros((1, 400))
    public[0, 0] = 1.0
    near = []
    for _ in range(200):  # noise as long as the sum itself
        sums = 100 * truth + rng.normal(0, 5.0, truth.shape)
        near.append((likely_centres(public, sums, 5.0, public) @ truth.T)[0, 0] - (sums @ truth.T)[0, 0] / np.linalg.norm(sums))
    assert min(near) > 0.05
    assert (likely_centres(public, 1e6 * truth, 5.0, public) @ truth.T)[0, 0] > 1 - 1e-9  # sums that are sure move all the way


def test_a_topic_without_documents_stays_where_it_was() -> None:
    corpus, vectors, _ = planted(30)
    model, state = learned(corpus.select(np.arange(0, 30, 3)), vectors, 0.0, rounds=1)
    begun = model.started(corpus.vocabulary, public_knowledge(vectors, SUBJECTS), np.random.default_rng(0))
    moved = np.abs(state["centres"] - begun["centres"]).max(axis=1) > 1e-6
    assert moved.sum() == 1


def test_a_document_between_centres_is_shared_and_one_near_a_single_one_is_not() -> None:
    model = SemanticTopics(n_topics=3, embedding_size=SIZE, of_words=0.01)
    axes = np.eye(SIZE)[:3]
    between, near = axes[:2].sum(axis=0), axes[2]
    held = HeldDocuments(
        sparse.csr_array(np.ones((2, 1), dtype=np.int32)),
        ("word",),
        np.arange(2, dtype=np.uint64),
        embeddings=np.array([between, near]),
    )
    state = {**model.start(("word",), np.random.default_rng(0)), "centres": axes}
    total = sum_of(model.query(state), held, radius=1.0).blocks()
    shared, own = np.sqrt(np.square(total["centres"]).sum(axis=1) / 0.97)[:2], np.abs(total["centres"][2])
    np.testing.assert_allclose(shared, 0.5**0.5, atol=1e-3)
    np.testing.assert_allclose(own, 0.97**0.5 * axes[2], atol=1e-3)
    assert np.count_nonzero(total["sizes"]) == 2  # each document is counted at one topic


def test_words_of_topics_are_those_that_the_others_have_less() -> None:
    """c-TF-IDF: a word that all topics have alike is not what any of them is about."""
    model = SemanticTopics(n_topics=2, embedding_size=SIZE)
    state = {
        **model.start(("common", "one", "two"), np.random.default_rng(0)),
        "counts": np.array([[50, 40, 0], [50, 0, 40.0]]),
    }
    assert model.topics(state).argmax(axis=1).tolist() == [1, 2]
    assert model.by_word(state).argmax(axis=0).tolist() == [0, 0]
    np.testing.assert_allclose(model.topics(state).sum(axis=1), 1.0)


def test_behind_much_noise_the_words_of_a_topic_are_those_that_its_centre_is_near_in_public() -> None:
    corpus, vectors, _ = planted(600)
    model, state = learned(corpus, vectors, deviation=1e5, rounds=1)
    near = state["centres"] @ np.array(vectors).T
    chosen = np.argsort(-model.topics(state), axis=1)[:, :5]
    for topic, words in enumerate(chosen):
        assert (near[topic, words] > np.median(near[topic])).all()


def test_a_state_with_public_words_of_another_kind_does_not_fit() -> None:
    corpus, vectors, _ = planted(12)
    model = SemanticTopics(n_topics=SUBJECTS, embedding_size=SIZE)
    state = model.started(corpus.vocabulary, public_knowledge(vectors, SUBJECTS), np.random.default_rng(0))
    rows = state["public_rows"]
    assert model.fits(state, WORDS)
    assert not model.fits({name: array for name, array in state.items() if name != "public_rows"}, WORDS)
    assert not model.fits({**state, "public_rows": np.ascontiguousarray(rows[:, :-1])}, WORDS)
    assert not model.fits({**state, "public_rows": rows[:-1]}, WORDS)


# ---- bounds -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        (np.ones(SIZE), 30),
        (np.full(SIZE, 1e30), 1),
        (np.eye(SIZE)[0] * 1e-30, 0),
        (np.full(SIZE, np.nan), 30),
        (np.zeros(SIZE), 0),
    ],
)
def test_no_row_is_longer_than_1_and_none_is_clipped(embedding: Array, words: int) -> None:
    model = SemanticTopics(n_topics=2, embedding_size=SIZE)
    counts = np.zeros((1, WORDS), dtype=np.int64)
    counts[0, :words] = 10**6
    held = HeldDocuments(
        sparse.csr_array(counts), tuple(map(str, range(WORDS))), np.ones(1, np.uint64), embeddings=embedding[None]
    )
    query = model.query(model.start(held.vocabulary, np.random.default_rng(0)))
    rows = []
    for radius in (1.0, np.inf):
        clipped_sum = sum_of(query, held, radius=radius)
        rows.append(clipped_sum.vector())
    assert np.sqrt(np.square(rows[0]).sum()) <= 1.0
    np.testing.assert_array_equal(rows[0], rows[1])
    assert clipped_sum.lost == 0


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300, 0.0])
def test_centres_that_make_no_sense_still_give_bounded_rows(number: float) -> None:
    """A coordinator may send anything of the right shape."""
    corpus, _, _ = planted(12)
    model = SemanticTopics(n_topics=2, embedding_size=SIZE)
    state = {**model.start(corpus.vocabulary, np.random.default_rng(0)), "centres": np.full((2, SIZE), number)}
    clipped_sum = sum_of(model.query(state), corpus, radius=1.0)
    assert np.sqrt(np.square(clipped_sum.vector()).sum()) <= len(corpus)
    with pytest.raises(BrokenPromise):
        model.query({**state, "centres": np.zeros((3, SIZE))}).answer(corpus, clipped_sum, {}, np.random.default_rng(0))


def test_word_vectors_of_another_kind_are_refused() -> None:
    with pytest.raises(Mistake, match="12 numbers"):
        small().started(VOCABULARY, public_knowledge(np.ones((len(VOCABULARY), 12)), 3), np.random.default_rng(0))


def test_shares_that_would_make_a_row_longer_than_1_are_refused() -> None:
    with pytest.raises(BadSetting, match="share for the embedding"):
        small(of_words=0.9, of_sizes=0.5)


@pytest.mark.parametrize("training", [{"start": "moments"}, {"vectors": "glove"}])
def test_a_start_that_has_no_words_among_embeddings_is_refused_before_anything_is_spent(training: dict[str, str]) -> None:
    asked = {"profile": "dp-central", "model": {"name": "semantic"}, "vocabulary": {"file": "english"}, "training": training}
    with pytest.raises(BadSetting, match="semantic"):
        plan_from_tables(asked, "a test")


# ---- documents without a word ----------------------------------------------------------------------------------------------


LISTED = ("known", "other")


def held(persons: bool = False) -> Corpus:
    rng = np.random.default_rng(0)
    counts = np.zeros((200, 2), dtype=np.int32)
    counts[::2, 0] = 1  # every other document has a word
    keys = rng.integers(0, 2**63, 200, dtype=np.uint64)
    owners = np.arange(200) // 2 if persons else None  # a person has one document of each kind
    documents = HeldDocuments(
        sparse.csr_array(counts), LISTED, keys, persons=owners, embeddings=rng.normal(size=(200, 384)).astype(np.float32)
    )
    return Corpus(documents)


def read(model: str, *, persons: bool = False) -> PartyDocuments:
    asked = {"model": {"name": model}, "vocabulary": {"file": "english"}, "training": {"start": "plain"}}
    whom = {"profile": "dp-central", "privacy": {"unit": "person", "epsilon": 1}} if persons else {"profile": "masked"}
    documents = PartyDocuments(held(persons))
    documents.adopt(LISTED, agree(plan_from_tables({**asked, **whom}, "a test")))
    return documents


@pytest.mark.parametrize("model", ["semantic", "zeroshot-tm"])
def test_who_learns_from_a_document_without_words(model: str) -> None:
    found = read(model)
    train, tried = found.for_question("train"), found.for_question("held_out")
    assert len(tried)
    assert (tried.lengths() > 0).all()
    assert (train.lengths() == 0).any() == (model == "semantic")
    assert not set(train.keys.tolist()) & set(tried.keys.tolist())


def test_all_documents_of_a_person_are_on_one_side_with_words_or_without() -> None:
    found = read("semantic", persons=True)
    train, tried = found.for_question("train"), found.for_question("held_out")
    assert len(tried)
    assert not set(train.persons.tolist()) & set(tried.persons.tolist())
