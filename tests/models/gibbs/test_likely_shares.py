"""Predictions from few counts: chance is not believed, and word totals are kept."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.models.lda.counting import likely_shares
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.nmf import NMF

TOPICS, WORDS = 5, 40
RNG = np.random.default_rng(7)
ALLOWED = 0.1  # nats a word


def test_words_keep_their_totals_and_no_word_is_impossible() -> None:
    counts = RNG.poisson(0.3, (TOPICS, WORDS)) * RNG.integers(0, 9, WORDS)
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
    counts = np.full((TOPICS, WORDS), forged)
    counts[0, 0] = 3.0
    for table in (counts, counts[:1], np.zeros((TOPICS, WORDS))):
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
