"""Topics of documents behind noise: drawn from the target that is promised, whatever the slots hold, and from nothing else."""

from dataclasses import dataclass
from itertools import product
from math import lgamma

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import Answer
from securetm.models.batches import with_zero
from securetm.models.lda import slots
from securetm.models.lda.counting import Assignments, CountTable
from securetm.models.lda.lda import LDA
from securetm.models.lda.slots import Slots
from securetm.testing.query_laws import SumOfRows


@dataclass(frozen=True)
class InMemory:
    """Slots of weights that were written down: a test's stand-in for privatised counts."""

    rows: sparse.csr_array
    whole: bool = False

    def __len__(self):
        return self.rows.shape[0]

    def between(self, first, last):
        part = self.rows[first:last]
        return part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data.astype(np.float64)


@dataclass(frozen=True)
class Behind:
    """Documents behind noise: how many slots each document and sentence has, and what the slots hold."""

    perturbed: InMemory
    token_ends: np.ndarray
    sentence_ends: np.ndarray
    keys: np.ndarray
    persons: None = None

    @property
    def vocabulary(self):
        return tuple(f"w{v}" for v in range(self.perturbed.rows.shape[1]))

    def __len__(self):
        return len(self.token_ends)

    def select(self, kept):
        lengths = np.diff(self.token_ends, prepend=0)
        mine = np.concatenate([np.arange(e - n, e) for e, n in zip(self.token_ends[kept], lengths[kept], strict=True)])
        last = np.zeros(len(self.perturbed), bool)
        last[self.sentence_ends - 1] = True
        rows = sparse.csr_array(self.perturbed.rows[mine])
        ends = np.cumsum(lengths[kept])
        return Behind(InMemory(rows, self.perturbed.whole), ends, np.flatnonzero(last[mine]) + 1, self.keys[kept])


def behind(rows, lengths, sentences=None, whole=False):
    """Documents of these lengths whose slots are the rows of a matrix; sentences end where documents do, unless it is said."""
    ends = np.cumsum(lengths)
    rows = sparse.csr_array(np.asarray(rows) if not sparse.issparse(rows) else rows)
    return Behind(
        InMemory(rows, whole), ends, ends if sentences is None else np.asarray(sentences), np.arange(len(ends), dtype=np.uint64)
    )


def table_of(counts, alpha=0.4, eta=0.3, step=3, seed=11):
    counts = np.asarray(counts, dtype=np.float64)
    return CountTable(counts, np.broadcast_to(np.asarray(alpha, dtype=np.float64), len(counts)).copy(), eta, step, seed)


def drawn(documents, table, by_sentence=False, sweeps=1, threads=1, topics=None):
    ends = with_zero(documents.sentence_ends) if by_sentence else None
    held = Slots.from_documents(documents, table.words, ends)
    old = Assignments.remembered({}).recall(held.draw_ends, held.names(documents.keys))
    if topics is not None:
        old = Assignments(old.names, np.zeros(len(old.names), np.int64), old.draw_ends, np.asarray(topics, dtype=np.uint16))
    return held, held.redrawn(table, old, sweeps, threads)


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def log_phi(table):
    smooth = table.counts + table.eta + 0.5 * table.counts.mean(axis=1, keepdims=True)
    return np.log(smooth / smooth.sum(axis=1, keepdims=True))


def exact_posterior(weights, table):
    """The chance of every assignment of one document's draws, whose weights are these rows: counted out."""
    said, chances = np.asarray(weights) @ log_phi(table).T, {}
    for topics in product(range(table.topics), repeat=len(said)):
        here = np.bincount(topics, minlength=table.topics)
        log = sum(lgamma(n + a) for n, a in zip(here, table.alpha, strict=True))
        chances[topics] = np.exp(log + sum(said[t, z] for t, z in enumerate(topics)) - said.max(axis=1).sum())
    whole = sum(chances.values())
    return {topics: chance / whole for topics, chance in chances.items()}


def distance(weights, slots_each, table, copies=30_000, sweeps=12, by_sentence=False):
    """Total variation between what is drawn for one document and what there should be."""
    rows = sparse.csr_array(np.tile(weights, (copies, 1)))
    ends = np.cumsum(np.tile(slots_each, copies))
    documents = behind(rows, np.full(copies, len(weights)), ends)
    _, topics = drawn(documents, table, by_sentence, sweeps)
    found = topics.reshape(copies, -1)
    starts = np.cumsum([0, *slots_each])[:-1]
    expected = exact_posterior(np.add.reduceat(np.asarray(weights), starts, axis=0) if by_sentence else weights, table)
    assert len(found[0]) == len(next(iter(expected)))
    return 0.5 * sum(abs(float((found == topics).all(axis=1).mean()) - chance) for topics, chance in expected.items())


SLOTS = [[1.1, 0.3, 0.0, 0.0, 0.4], [0.0, 0.0, 0.9, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 2.3, 0.7]]
WHOLE = [[1.0, 0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0, 3.0]]


def some_table(k, **settings):
    return table_of(np.random.default_rng(k).integers(0, 6, (k, 5)), **settings)


@pytest.mark.parametrize(("k", "weights"), [(2, SLOTS), (4, SLOTS[1:]), (3, WHOLE)])
def test_tokens_draw_from_the_target(k, weights):
    assert distance(weights, [1] * len(weights), some_table(k)) < 0.02


@pytest.mark.parametrize(("k", "each"), [(2, [1, 3]), (3, [1, 1, 2])])
def test_sentences_draw_from_the_target(k, each):
    assert distance(SLOTS, each, some_table(k), by_sentence=True) < 0.02


def test_a_long_sentence_has_more_slots_than_proposals():
    rng = np.random.default_rng(5)
    weights = rng.exponential(0.1, (21, 5)) * (rng.random((21, 5)) < 0.4)
    assert distance(weights, [9, 12], some_table(3), copies=20_000, by_sentence=True) < 0.02


# ---- who draws ---------------------------------------------------------------------------------------------------------


def noisy_documents(documents=40, words=30, whole=False, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 25, documents)
    rows = rng.integers(1, 4, (lengths.sum(), words)) if whole else rng.exponential(0.5, (lengths.sum(), words))
    rows = rows * (rng.random(rows.shape) < 0.2)
    cut = np.flatnonzero(rng.random(lengths.sum()) < 0.3) + 1
    return behind(rows, lengths, np.union1d(cut, np.cumsum(lengths)[lengths > 0]), whole)


@pytest.mark.parametrize("by_sentence", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_it_does_not_matter_who_holds_which_document(by_sentence, whole):
    documents, table = noisy_documents(whole=whole), some_table_over(30)
    held, topics = drawn(documents, table, by_sentence, sweeps=2)
    whose, sums = np.repeat(np.arange(40), np.diff(held.draw_ends)), []
    for part in (np.arange(40) % 3 == 0, np.arange(40) % 3 != 0):
        mine, own = drawn(documents.select(np.flatnonzero(part)), table, by_sentence, sweeps=2)
        assert (own == topics[part[whose]]).all()
        sums.append(mine.counted(own, table))
    assert np.allclose(sums[0] + sums[1], held.counted(topics, table), rtol=0, atol=1e-9)


@pytest.mark.parametrize("by_sentence", [False, True])
def test_threads_and_blocks_change_nothing(by_sentence, monkeypatch):
    documents, table = noisy_documents(), some_table_over(30)
    held, topics = drawn(documents, table, by_sentence, sweeps=2)
    for threads, block in ((2, 1 << 15), (3, 1), (1, 100)):
        monkeypatch.setattr(slots, "_BLOCK", block)
        again, others = drawn(documents, table, by_sentence, sweeps=2, threads=threads)
        assert (topics == others).all()
        assert (held.counted(topics, table) == again.counted(others, table)).all()


def some_table_over(words, k=4, seed=2):
    return table_of(np.random.default_rng(seed).integers(0, 9, (k, words)))


def test_a_long_document_sweeps_piece_by_piece(monkeypatch):
    documents, table = noisy_documents(documents=6), some_table_over(30)
    monkeypatch.setattr(slots, "_PIECE", 4)
    held, topics = drawn(documents, table, sweeps=2)
    assert np.diff(held._layout.pieces).max() == 4
    alone, own = drawn(documents.select(np.array([4])), table, sweeps=2)
    assert (own == topics[held.draw_ends[4] : held.draw_ends[5]]).all()
    assert len(alone) == 1


@pytest.mark.parametrize("by_sentence", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_counts_are_the_sums_of_weights(by_sentence, whole):
    documents, table = noisy_documents(whole=whole), some_table_over(30)
    held, topics = drawn(documents, table, by_sentence)
    expected = np.zeros((4, 30))
    for slot, z in enumerate(np.repeat(topics, np.diff(held.slot_ends))):
        expected[z] += documents.perturbed.rows[[slot]].toarray()[0]
    assert np.allclose(held.counted(topics, table), expected, rtol=0, atol=1e-7)
    assert np.allclose(held.counted(topics.copy(), table), expected, rtol=0, atol=1e-7)
    clipped_sum = SumOfRows()
    held.add_rows(topics, table, clipped_sum, None)
    assert [len(owners) for owners in clipped_sum.owners] == [1]
    assert clipped_sum.rows[0].dtype == (np.int64 if whole else np.float64)
    assert (clipped_sum.rows[0].reshape(4, 30) == held.counted(topics, table)).all()


def test_first_topics_depend_on_no_weight():
    documents, nothing = noisy_documents(), table_of(np.zeros((5, 30)))
    blank = behind(np.zeros((len(documents.perturbed), 30)), np.diff(documents.token_ends, prepend=0), documents.sentence_ends)
    for by_sentence in (False, True):
        _, topics = drawn(documents, nothing, by_sentence, sweeps=2)
        assert (topics == drawn(blank, nothing, by_sentence, sweeps=2)[1]).all()
        assert set(topics) == set(range(5))


def test_names_are_made_of_public_facts():
    documents = noisy_documents()
    lengths = np.diff(documents.token_ends, prepend=0)
    blank = behind(np.zeros((len(documents.perturbed), 30)), lengths, documents.sentence_ends)
    names = Slots.from_documents(documents, 30).names(documents.keys)
    assert (names == Slots.from_documents(blank, 30).names(documents.keys)).all()
    assert len(set(names.tolist())) == 40
    assert (names != Slots.from_documents(documents, 30).names(documents.keys + np.uint64(1000))).all()


# ---- odd documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_sentence", [False, True])
@pytest.mark.parametrize(
    ("rows", "lengths", "k"),
    [
        (np.zeros((0, 3)), [], 2),
        (np.zeros((0, 3)), [0, 0], 2),
        ([[0.0, 1.25, 0.0]], [1], 7),
        (np.zeros((4, 3)), [1, 3], 2),
        ([[2.0]] * 5, [0, 5], 3),
        ([[0.5, 0.5]] * 6, [6], 1),
        ([[1e6, 1e-9, 3.0]] * 4, [2, 2], 2),
    ],
)
def test_odd_documents_have_topics(rows, lengths, k, by_sentence):
    rows = np.asarray(rows, dtype=np.float64)
    sentences = np.unique(np.cumsum(lengths, dtype=np.int64))
    documents = behind(rows, np.asarray(lengths, dtype=np.int64), sentences[sentences > 0])
    for counts in (
        np.zeros((k, rows.shape[1])),
        np.random.default_rng(0).random((k, rows.shape[1])) * 1e-300 + 3.0 * np.eye(k, rows.shape[1]),
    ):
        held, topics = drawn(documents, table_of(counts, eta=1e-9), by_sentence, sweeps=3, threads=2)
        assert (topics < k).all()
        assert len(topics) == (len(documents.sentence_ends) if by_sentence else len(rows))
        found = held.counted(topics, table_of(counts))
        assert np.isfinite(found).all()
        assert np.allclose(found.sum(axis=0), rows.sum(axis=0), rtol=1e-9, atol=1e-6)


# ---- what is learned ---------------------------------------------------------------------------------------------------


def planted_behind(epsilon, tau, whole, documents=300, words=60, length=40, seed=0):
    """Documents of one of three topics with twenty words each, behind Laplace noise; the noise is this test's own."""
    rng = np.random.default_rng(seed)
    topic = np.arange(documents) % 3
    tokens = (20 * topic[:, None] + rng.integers(0, 20, (documents, length))).ravel()
    held = np.zeros((len(tokens), words))
    held[np.arange(len(tokens)), tokens] = 1
    if whole:
        ratio = np.exp(-epsilon)
        held += rng.geometric(1 - ratio, held.shape) - rng.geometric(1 - ratio, held.shape)
    else:
        held += rng.laplace(0, 1 / epsilon, held.shape)
    return behind(np.where(held > tau, held, 0), np.full(documents, length), whole=whole), topic


@pytest.mark.parametrize(("epsilon", "tau", "whole"), [(8.0, 0.2, True), (11.0, 0.2, False)])
def test_planted_topics_are_found_behind_noise(epsilon, tau, whole):
    documents, _ = planted_behind(epsilon, tau, whole)
    model = LDA(n_topics=3, alpha=0.1, eta=0.1)
    state, memory = model.start(tuple(f"w{v}" for v in range(60)), np.random.default_rng(4)), {}
    for _ in range(60):
        clipped_sum = SumOfRows()
        model.query(state).answer(documents, clipped_sum, memory, np.random.default_rng(0))
        state = model.update(state, Answer({"counts": sum(clipped_sum.rows).reshape(3, 60)}))
    shares = model.topics(state).reshape(3, 3, 20).sum(axis=2)
    assert sorted(shares.argmax(axis=1)) == [0, 1, 2]
    assert shares.max(axis=1).min() > (0.9 if whole else 0.5)
