"""What is read out of tables of counts with noise in them: at least what all words say, and counts that stand out."""

from __future__ import annotations

import numpy as np
import pytest

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array
from securetm.corpus.corpus import Corpus
from securetm.mechanisms.clipping import at_most
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.mixed_topics import kept_fit, without_kept
from securetm.models.noisy_counts import NoisedCounts, likely_after
from securetm.models.quality import perplexity

WORDS, ROUNDS = 500, 4
NOISE = {0.5: 110.0, 3: 20.0}  # about what that epsilon asks for over so many rounds of rows of 30 counts


@pytest.fixture(scope="module")
def corpora() -> tuple[Corpus, Corpus]:
    nodes = lda_nodes(
        LdaNodes(1, 8, WORDS, alpha=0.1, documents=900, validation_documents=200, shortest=15, longest=40), seed=0
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
    assert set(without_kept({**state, "counts": truth})) == {"counts"}


def test_noise_that_differs_by_word_is_kept_by_word() -> None:
    truth, deviations = np.full((3, 4), 50.0), np.array([1.0, 2.0, 2.0, 4.0])
    state = likely_after({}, truth, deviations, truth)
    noised = NoisedCounts.kept_in(state)
    assert noised is not None
    assert kept_fit(state, 3, 4)
    np.testing.assert_allclose(noised.variance, np.square(deviations))
    np.testing.assert_allclose(noised.words_variance, 3 * np.square(deviations))
    again = NoisedCounts.kept_in(likely_after(state, truth, deviations, truth))
    assert again is not None
    np.testing.assert_allclose(again.words_variance, 6 * np.square(deviations))
    assert set(without_kept(state)) == {"counts"}


def test_without_noise_nothing_is_kept_beside_the_counts() -> None:
    assert NoisedCounts.after({}, np.ones((2, 3)), 0.0) is None
    assert NoisedCounts.kept_in({"counts": np.ones((2, 3))}) is None
    assert set(likely_after({}, np.ones((2, 3)), 0.0, np.ones((2, 3)))) == {"counts"}
