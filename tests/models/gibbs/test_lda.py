"""LDA by Gibbs sampling: both samplers draw from the exact posterior, topics are found, and few counts predict well."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.compiled import njit
from securetm.contracts import Answer, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.federation.questions import PerPerson
from securetm.models.batches import chunks
from securetm.models.given_documents import as_documents
from securetm.models.lda import counting
from securetm.models.lda.counting import NEVER, Assignments, likely_shares
from securetm.models.lda.lda import LDA, LdaDocuments
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.samplers import OTHER, draw, tables_of
from securetm.models.mixed_topics import BagDocuments, Completion
from securetm.models.nmf import NMF
from securetm.testing.query_laws import SumOfRows
from tests.quick_part import quick

from ..sentence.sentence_laws import distance, posterior
from ..trained_by_hand import VOCABULARY, WORDS, counts_of, planted, rounds

# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_no_row_names_a_place_twice():
    """Or its length would be told too short, and a clip would let it through."""
    counts = np.zeros((1, WORDS), dtype=np.int64)
    counts[0, :3] = 40
    clipped_sum = SumOfRows()
    poured = []
    clipped_sum.add = lambda rows, owners: poured.append(rows)
    model = LDA(n_topics=3)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    model.query(state).answer(as_documents(counts, VOCABULARY), clipped_sum, {}, np.random.default_rng(0))
    (row,) = poured
    assert len(np.unique(row.indices)) == row.nnz <= 9
    assert row.sum() == 120


def test_sums_do_not_depend_on_the_length_of_a_chunk(monkeypatch):
    documents, _ = planted(40)
    persons = np.random.default_rng(1).integers(0, 9, 40)
    model = LDA(n_topics=3)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    whole = counts_of(model, state, documents, {})
    monkeypatch.setattr(counting, "_CHUNK", 30)
    np.testing.assert_array_equal(counts_of(model, state, documents, {}), whole)
    query = PerPerson(model.query(state))
    owned = Corpus(HeldDocuments(documents.counts, documents.vocabulary, documents.keys, persons=persons))
    clipped_sum = ClippedRowSum(query.terms, persons=persons)  # which refuses a person that comes back in a later chunk
    query.answer(owned, clipped_sum, {}, np.random.default_rng(0))
    assert query.terms.unit is Unit.PERSON
    np.testing.assert_array_equal(clipped_sum.blocks()["counts"], whole)


@pytest.mark.parametrize("most", [1, 3, 8])
def test_a_person_is_in_one_chunk_whatever_the_documents_sum_up_to(most):
    """Or a party would refuse for a sum of lengths that one document more or less does not have."""
    ends, persons = np.array([0, 1, 2, 4, 5, 6]), np.array([0, 1, 2, 1, 0])
    found = list(chunks(ends, persons, most))
    assert sorted(np.concatenate(found).tolist()) == [0, 1, 2, 3, 4]
    met = [set(persons[rows].tolist()) for rows in found]
    assert sum(map(len, met)) == len(set().union(*met)) == 3


# ---- what a party remembers --------------------------------------------------------------------------------------------


def test_topics_follow_their_documents_wherever_these_stand():
    documents, _ = planted(20)
    model, memory = LDA(n_topics=3), {}
    state = rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 2)
    bags = LdaDocuments.from_counts(documents.counts, WORDS)
    before = Assignments.remembered(memory).recall(bags.draw_ends, bags.names(documents.keys))
    order = np.random.default_rng(4).permutation(20)[:12]
    moved = documents.select(order)
    some = LdaDocuments.from_counts(moved.counts, WORDS)
    after = Assignments.remembered(memory).recall(some.draw_ends, some.names(moved.keys))
    for here, there in enumerate(order):
        expected = before.topics[before.draw_ends[there] : before.draw_ends[there + 1]]
        np.testing.assert_array_equal(after.topics[after.draw_ends[here] : after.draw_ends[here + 1]], expected)
    assert (after.steps == state["step"][0] - 1).all()


def test_documents_that_were_not_asked_keep_their_topics():
    documents, _ = planted(20)
    model, memory = LDA(n_topics=3), {}
    state = rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 1)
    bags = LdaDocuments.from_counts(documents.counts, WORDS)
    names = bags.names(documents.keys)
    before = Assignments.remembered(memory).recall(bags.draw_ends, names)
    counts_of(model, state, documents.select(np.arange(5)), memory)
    after = Assignments.remembered(memory)
    np.testing.assert_array_equal(after.recall(bags.draw_ends, names).steps, [1] * 5 + [0] * 15)
    for row in range(5, 20):
        one = LdaDocuments.from_counts(documents.counts[[row]], WORDS)
        expected = before.topics[before.draw_ends[row] : before.draw_ends[row + 1]]
        np.testing.assert_array_equal(after.recall(one.draw_ends, names[[row]]).topics, expected)


def test_a_document_that_changed_is_a_new_one():
    documents, _ = planted(4)
    memory = {}
    model = LDA(n_topics=3)
    rounds(model, model.start(VOCABULARY, np.random.default_rng(0)), documents, memory, 1)
    table = documents.counts.toarray()
    table[2, 5] += 1
    bags = LdaDocuments.from_counts(table, WORDS)
    recalled = Assignments.remembered(memory).recall(bags.draw_ends, bags.names(documents.keys))
    np.testing.assert_array_equal(recalled.steps, [0, 0, NEVER, 0])


# ---- what is learned ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return LDA(n_topics=3).fit(planted()[0], epochs=30)


def test_planted_topics_are_found(fitted):
    documents, topic = planted()
    tops = [{int(word[1:]) // 20 for word in words} for words in fitted.top_words(10)]
    assert sorted(tops, key=min) == [{0}, {1}, {2}]
    home = [tops.index({t}) for t in range(3)]
    fresh, fresh_topic = planted(60, seed=9)
    assert (fitted.transform(documents).argmax(1) == np.array(home)[topic]).mean() > 0.98
    assert (fitted.transform(fresh).argmax(1) == np.array(home)[fresh_topic]).mean() > 0.95


def test_shares_of_one_word_are_known_in_closed_form(fitted):
    shares = fitted.transform(as_documents(np.eye(WORDS, dtype=np.int64), VOCABULARY))
    belongs = fitted.components_.T / fitted.components_.T.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, (belongs + fitted.alpha) / (1 + 3 * fitted.alpha), rtol=1e-9)
    nothing = fitted.transform(as_documents(np.zeros((2, WORDS), dtype=np.int64), VOCABULARY))
    np.testing.assert_allclose(nothing, 1 / 3)


# ---- what is given to it -----------------------------------------------------------------------------------------------


def test_noise_leaves_no_negative_count():
    model = LDA(n_topics=2)
    state = model.start(("a", "b"), np.random.default_rng(0))
    after = model.update(state, Answer({"counts": np.array([[-3.0, 2.4], [0.6, -0.1]])}))
    np.testing.assert_array_equal(after["counts"], [[0, 2.4], [0.6, 0]])
    assert after["counts"].dtype == state["counts"].dtype


# ---- the exact posterior ---------------------------------------------------------------------------------------------------


COPIES = 30_000


def of(words, others, alpha):
    """The chance of every assignment of one document's tokens: of sentences of one word each."""
    return posterior([[word] for word in words], others, alpha, 0.3)


def table_of(model, counts, alpha, step=0):
    state = model.start([""] * counts.shape[1], np.random.default_rng(1))
    return model.table({**state, "counts": counts.astype(float), "alpha": np.array(alpha), "step": np.array([step])})


def held_by(model, words):
    documents = as_documents(np.tile(np.bincount(words, minlength=4), (COPIES, 1)))
    return documents, model.read(documents, 4)


CASES = [([0.1, 1.0, 0.4], [0, 0, 1, 3]), (np.linspace(0.2, 0.6, 9), [0, 3]), ([0.3] * 17, [2])]  # 8 topics fill a register
FEW = quick(product(("gibbs", "mh"), range(3)), ("gibbs", 0), ("mh", 1))


@pytest.mark.parametrize(("sampler", "case"), FEW)
def test_a_new_document_draws_from_its_exact_posterior(sampler, case):
    alpha, words = CASES[case]
    others = np.random.default_rng(len(alpha)).integers(0, 6, (len(alpha), 4))
    model = LDA(n_topics=len(alpha), eta=0.3, sweeps=30, sampler=sampler)
    documents, held = held_by(model, words)
    nothing = Assignments.remembered({}).recall(held.draw_ends, held.names(documents.keys))
    drawn = held.redrawn(table_of(model, others, alpha), nothing, model.sweeps, 1).reshape(COPIES, len(words))
    assert distance(drawn, of(words, others, alpha)) < 0.02


@pytest.mark.parametrize(("sampler", "case"), FEW)
def test_a_counted_document_draws_as_if_it_were_not_in_the_table(sampler, case):
    """Its old topics are far from where it belongs; the table counts them, and it takes them out again."""
    alpha, words = CASES[case]
    k = len(alpha)
    others = np.random.default_rng(k).integers(0, 4, (k, 4))
    old = np.zeros(len(words), dtype=np.uint16)
    table = others.copy()
    np.add.at(table, (old, words), 1)
    model = LDA(n_topics=k, eta=0.3, sweeps=30, sampler=sampler)
    documents, held = held_by(model, words)
    known = Assignments(held.names(documents.keys), np.zeros(COPIES, int), held.draw_ends, np.tile(old, COPIES))
    drawn = held.redrawn(table_of(model, table, alpha, step=1), known, model.sweeps, 1).reshape(COPIES, len(words))
    assert distance(drawn, of(words, others, alpha)) < 0.02


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_a_sweep_leaves_the_posterior_as_it_is(sampler):
    """One sweep is not enough to forget a wrong start, so it must begin right and stay right."""
    alpha, words = [0.1, 1.0, 0.4], [0, 0, 1, 3]
    others = np.random.default_rng(3).integers(0, 6, (3, 4))
    expected = of(words, others, alpha)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(expected), COPIES, p=list(expected.values()))
    old = np.array(list(expected), dtype=np.uint16)[chosen]
    model = LDA(n_topics=3, eta=0.3, sweeps=1, sampler=sampler, cycles=2)
    documents, held = held_by(model, words)
    known = Assignments(held.names(documents.keys), np.full(COPIES, -1), held.draw_ends, old.ravel())
    drawn = held.redrawn(table_of(model, others, alpha, step=1), known, model.sweeps, 1).reshape(COPIES, 4)
    assert (drawn != old).any(axis=1).mean() > 0.2
    assert distance(drawn, expected) < 0.02


def test_which_sampler_it_is_goes_by_the_number_of_topics():
    documents = as_documents(np.ones((2, 3), dtype=int))
    read = {
        (k, name): LDA(n_topics=k, sampler=name, cycles=3).read(documents, 3) for k in (2, 5_000) for name in ("auto", "mh")
    }
    assert all(isinstance(held, LdaDocuments) for held in read.values())
    assert {setting: held.cycles for setting, held in read.items()} == {
        (2, "auto"): 0,
        (5_000, "auto"): 3,
        (2, "mh"): 3,
        (5_000, "mh"): 3,
    }


# ---- alias tables ----------------------------------------------------------------------------------------------------------


def shares_of(tables: np.ndarray) -> np.ndarray:
    """The probability of each outcome, read back from the tables."""
    bits = tables.view(np.uint64)
    own = np.minimum((bits & ~OTHER).view(np.float64), 1.0)
    shares = own.copy()
    rows = np.repeat(np.arange(len(tables)), tables.shape[1])
    np.add.at(shares, (rows, (bits & OTHER).astype(np.int64).ravel()), (1.0 - own).ravel())
    return shares / tables.shape[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e9)), min_size=1, max_size=70).filter(lambda row: sum(row) > 0),
)
def test_cells_add_up_to_the_distribution(row):
    weights = np.array([row])
    tables, sums = tables_of(weights)
    expected = weights / weights.sum()
    np.testing.assert_allclose(sums, weights.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(shares_of(tables), expected, rtol=1e-6, atol=1e-11)


@njit()
def _drawn(table, bits, chances):
    return np.array([draw(table, bits, chance) for chance in chances])


def test_draws_fall_as_the_table_says():
    weights = np.array([[3.0, 0.0, 1.0, 0.5, 10.0]])
    table = tables_of(weights)[0][0]
    chances = (np.arange(100_000) + 0.5) / 100_000  # evenly spread: no chance in this test
    found = np.bincount(_drawn(table, table.view(np.uint64), chances), minlength=5) / 100_000
    np.testing.assert_allclose(found, weights[0] / weights.sum(), atol=1e-4)
    assert _drawn(table, table.view(np.uint64), np.array([np.nextafter(1.0, 0.0)]))[0] < 5


# ---- predictions from few counts -------------------------------------------------------------------------------------------


TOPICS, KNOWN = 5, 40
RNG = np.random.default_rng(7)
ALLOWED = 0.1  # nats a word


def test_words_keep_their_totals_and_no_word_is_impossible() -> None:
    counts = RNG.poisson(0.3, (TOPICS, KNOWN)) * RNG.integers(0, 9, KNOWN)
    joint = likely_shares(counts)
    assert joint.min() > 0
    totals = counts.sum(axis=0) + 0.5
    np.testing.assert_allclose(joint.sum(axis=0), totals / totals.sum(), rtol=1e-12)


def test_shares_that_chance_explains_are_not_believed() -> None:
    """A word's uses are drawn from the shares of all words: what is left of the differences is small, and none for many."""
    usual = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    counts = np.array([RNG.multinomial(uses, usual) for uses in RNG.integers(1, 40, 400)]).T
    joint = likely_shares(counts)
    shares, found = joint / joint.sum(axis=0), counts / counts.sum(axis=0)
    prevalence = (counts.sum(axis=1) / counts.sum())[:, None]
    assert np.mean(np.abs(shares - prevalence).max(axis=0) < 1e-9) > 0.5
    assert np.square(shares - prevalence).sum() < 0.15 * np.square(found - prevalence).sum()


@pytest.mark.parametrize("forged", [np.nan, -3.0, 1e300])
def test_any_table_gives_shares(forged: float) -> None:
    counts = np.full((TOPICS, KNOWN), forged)
    counts[0, 0] = 3.0
    for table in (counts, counts[:1], np.zeros((TOPICS, KNOWN))):
        joint = likely_shares(table)
        assert np.isfinite(joint).all()
        assert joint.min() > 0
        assert joint.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "model",
    [
        LDA(n_topics=TOPICS, sweeps=5),
        VariationalLDA(n_topics=TOPICS, eta=1.0),
        NMF(n_topics=TOPICS),
    ],
    ids=["lda", "lda-vi", "nmf"],
)
def test_few_titles_whose_words_are_independent_are_predicted_about_as_well_as_by_frequencies(model: LDA) -> None:
    """There is nothing to learn but frequencies: topics of these titles' own words must not cost much."""
    rng, chances = np.random.default_rng(3), 1.0 / np.arange(1, 301)
    texts = [" ".join(f"w{n}" for n in rng.choice(300, 5, p=chances / chances.sum())) for _ in range(1_200)]
    corpus = Corpus.from_strings(texts)
    known, held = corpus.select(np.arange(600)), corpus.select(np.arange(600, len(corpus)))
    fitted = model.fit(known, epochs=10)
    shares = np.asarray(known.counts.sum(axis=0)).ravel() + 0.5
    lost = []
    for division in range(6):  # of each title's words: one alone is off by some hundredths
        seen, unseen = held.halves(division)
        by_frequencies = float((unseen.counts @ np.log(shares / shares.sum())).sum() / unseen.counts.sum())
        found = float(model.log_likelihood(fitted.learned.state, seen, unseen).sum() / unseen.counts.sum())
        lost.append(by_frequencies - found)
    assert np.mean(lost) < ALLOWED


# ---- the other words of a document -----------------------------------------------------------------------------------------


PREVALENCE = np.array([0.6, 0.3, 0.1])
BY_WORD = np.ascontiguousarray(np.random.default_rng(0).dirichlet(np.full(30, 0.3), 3).T + 1e-6)


def held(*rows: list[int]) -> BagDocuments:
    counts = np.zeros((len(rows), len(BY_WORD)), dtype=np.int64)
    for row, words in enumerate(rows):
        np.add.at(counts[row], words, 1)
    return BagDocuments.from_counts(sparse.csr_array(counts), len(BY_WORD))


@pytest.mark.parametrize("doubt", [0.0, 8.0])
def test_of_one_word_the_mean_over_the_posterior_is_exact(doubt: float) -> None:
    topics = PREVALENCE * BY_WORD[4] / (PREVALENCE * BY_WORD[4]).sum()  # how likely each topic is, given the word
    weights = np.append(2.0, (2.0 + doubt) * np.array([0.5, 1.0, 2.0]))  # one word tells nothing about how firm the prior is
    exact = np.mean([(weight * PREVALENCE + topics) / (weight + 1) for weight in weights], axis=0)
    np.testing.assert_allclose(Completion(PREVALENCE, 2.0, doubt).shares(BY_WORD, held([4]), 1)[0], exact, rtol=1e-9)


def test_a_document_is_completed_alone_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 30, rng.integers(0, 9)).tolist() for _ in range(40)]
    prior = Completion.around(BY_WORD, PREVALENCE, 1.0)
    together = prior.shares(BY_WORD, held(*rows), 3)
    np.testing.assert_array_equal(together, np.vstack([prior.shares(BY_WORD, held(row), 1) for row in rows]))
