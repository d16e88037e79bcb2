"""What is read out of tables of counts with noise in them: at least what all words say, and counts that stand out."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.synthetic import LdaNodes, lda_nodes
from securetm.mechanisms.clipping import at_most
from securetm.models.gibbs.lda import LDA
from securetm.models.noisy_counts import NoisedCounts, likely_counts, positive_means, told_to_parties
from securetm.models.quality import perplexity
from securetm.models.variational.lda_vi import VariationalLDA

WORDS, ROUNDS = 500, 4
NOISE = {0.5: 110.0, 1: 56.0, 3: 20.0, 8: 9.0}  # about what that epsilon asks for over so many rounds of rows of 30 counts


@pytest.fixture(scope="module")
def corpora() -> tuple[Corpus, Corpus]:
    nodes = lda_nodes(
        LdaNodes(1, 8, 8, WORDS, alpha=0.1, documents=900, validation_documents=200, shortest=15, longest=40), seed=0
    )
    return next(iter(nodes.train.values())), next(iter(nodes.validation.values()))


def trained(model: LDA | VariationalLDA, documents: Corpus, deviation: float, rows: int = 30) -> dict[str, Array]:
    """Rounds by hand, each with noise of that deviation in the total; the answer says so, as a mechanism does."""
    state, memory, rng = dict(model.start(documents.vocabulary, np.random.default_rng(0))), {}, np.random.default_rng(1)
    for _ in range(ROUNDS):
        query = model.query(model.for_party(state, ""))
        clipped_sum = (
            ClippedRowSum(query.terms, on_rows=lambda found: at_most(found, rows, 1))
            if isinstance(model, LDA)
            else ClippedRowSum(query.terms)
        )
        query.answer(documents, clipped_sum, memory, rng)
        counts = clipped_sum.blocks()["counts"]
        noised = counts + rng.normal(0, deviation, counts.shape)
        state = dict(model.update(state, Answer({"counts": noised}, deviation=deviation)))
    return state


@pytest.mark.parametrize("epsilon", NOISE)
@pytest.mark.parametrize("model", [LDA(n_topics=8), VariationalLDA(n_topics=8, repeats=1)], ids=["lda", "lda-vi"])
def test_it_predicts_no_worse_than_the_words_that_were_paid_for_nor_than_a_guess(
    model: LDA | VariationalLDA, epsilon: float, corpora: tuple[Corpus, Corpus]
) -> None:
    state = trained(model, corpora[0], NOISE[epsilon])
    seen, unseen = corpora[1].halves(0)
    words = unseen.counts.sum()
    noised = NoisedCounts.kept_in(state)
    assert noised is not None
    shares = noised.word_totals() / noised.word_totals().sum()
    found, alone = (
        perplexity(model.log_likelihood(state, seen, unseen), words),
        perplexity(unseen.counts @ np.log(shares), words),
    )
    assert found <= 1.001 * alone
    assert alone <= 1.001 * WORDS


def test_topics_that_are_nothing_but_noise_are_the_word_frequencies_exactly() -> None:
    rng = np.random.default_rng(0)
    truth = np.outer(np.full(6, 1 / 6), rng.exponential(300, 200))
    noised = NoisedCounts.after({}, truth + rng.normal(0, 400, truth.shape), 400.0)
    assert noised is not None
    topics = noised.likely() / noised.likely().sum(axis=1, keepdims=True)
    np.testing.assert_allclose(topics, np.broadcast_to(noised.word_totals() / noised.word_totals().sum(), topics.shape))


def test_counts_that_stand_out_stay_and_others_are_shrunk() -> None:
    rng = np.random.default_rng(0)
    truth = np.zeros((6, 200))
    truth[0, :20] = truth[1, 20:40] = 1000
    noised = NoisedCounts.after({}, truth + rng.normal(0, 30, truth.shape), 30.0)
    assert noised is not None
    found = noised.likely()
    assert (found > 0).all()
    np.testing.assert_allclose(found[0, :20], 1000, rtol=0.25)
    assert np.square(found - truth).mean() < np.square(noised.counts - truth).mean()
    np.testing.assert_allclose(found.sum(axis=0), noised.word_totals())


def test_words_come_to_one_number_as_noise_grows_and_stay_as_it_vanishes() -> None:
    found = np.array([0.0, 10.0, 90.0, 300.0])
    np.testing.assert_allclose(
        likely_counts(found, 1e6), 1000, rtol=0.01
    )  # a thousandth of the noise: no mean stands out of it
    np.testing.assert_allclose(likely_counts(found, 1e-3), found, atol=2e-3)
    np.testing.assert_array_equal(likely_counts(found, 0.0), [1e-9, 10, 90, 300])


def test_each_rounds_totals_of_words_count() -> None:
    rng = np.random.default_rng(0)
    truth = rng.exponential(100, (5, 300))
    state: dict[str, Array] = {}
    errors = []
    for _ in range(16):
        noised = NoisedCounts.after(state, truth + rng.normal(0, 100, truth.shape), 100.0)
        assert noised is not None
        state = dict(noised.arrays())
        errors.append(float(np.abs(noised.word_totals() - truth.sum(axis=0)).mean()))
    assert errors[-1] < errors[0] / 2
    assert set(told_to_parties({**state, "counts": truth})) == {"counts"}


def test_means_above_zero_are_right_near_and_far() -> None:
    """Against sums over a fine grid; far below 0 the mean is that of an exponential variable."""
    grid = np.linspace(0, 60, 2_000_001)
    for centre in (-25.0, -19.0, -3.0, 0.0, 4.0):
        weights = np.exp(-0.5 * (grid - centre) ** 2 + 0.5 * min(centre, 0) ** 2)
        expected = (grid * weights).sum() / weights.sum()
        np.testing.assert_allclose(positive_means(np.array([centre]), np.array([1.0])), expected, rtol=2e-3)
    np.testing.assert_allclose(positive_means(np.array([-1e9]), np.array([1.0])), 1e-9)


def test_without_noise_nothing_is_kept_beside_the_counts() -> None:
    assert NoisedCounts.after({}, np.ones((2, 3)), 0.0) is None
    assert NoisedCounts.kept_in({"counts": np.ones((2, 3))}) is None
