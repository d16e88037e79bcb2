"""Which words stand above the noise: false ones are rare whatever the table, and words that do are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import Answer, Array
from securetm.models.given_documents import as_documents
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.nmf import NMF
from securetm.models.noisy_counts import RATE, stand_above, top_words_above_noise
from tests.models.trained_by_hand import sum_of

TOPICS, WORDS = 10, 300


def excess(counts: Array) -> Array:
    """By how much a sum without noise is above what its totals say: the claim is that this is positive."""
    return counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()


def table(rng: np.random.Generator, total: float, times: float) -> Array:
    """Counts of independent words, of which one cell of fifty is so many times larger."""
    often = 1.0 / np.arange(5, WORDS + 5)
    shares = np.outer(rng.dirichlet(np.full(TOPICS, 3.0)), often / often.sum())
    raised = np.where(rng.random(shares.shape) < 0.02, times, 1.0)
    return rng.poisson(total * shares * raised).astype(float)


def false_share(above: Array, counts: Array) -> float:
    return float((above & (excess(counts) <= 0)).sum() / max(above.sum(), 1))


@pytest.mark.parametrize("spread", [1.0, 4.0], ids=["alike", "by word"])
@pytest.mark.parametrize(("total", "times", "found"), [(30_000, 1.0, 0.0), (30_000, 10.0, 0.8), (300_000, 4.0, 0.8)])
def test_of_words_said_to_stand_above_the_noise_few_do_not(total: float, times: float, found: float, spread: float) -> None:
    rng, false, power = np.random.default_rng(3), [], []
    for _ in range(150):
        counts = table(rng, total, times)
        deviations = 8.0 * rng.uniform(1 / spread, 1.0, WORDS)
        above = stand_above(counts + deviations * rng.normal(size=counts.shape), deviations)
        false.append(false_share(above, counts))
        large = excess(counts) > 6 * deviations
        power.append((above & large).sum() / max(large.sum(), 1))
    assert np.mean(false) < RATE
    assert np.mean(power) >= found


# ---- models --------------------------------------------------------------------------------------------------------------


def documents(rng: np.random.Generator, topics: Array, many: int = 300) -> object:
    """Documents of 20 words, each a mixture of these topics; a single topic makes words independent."""
    mixed = rng.dirichlet(np.full(len(topics), 0.1), many) @ topics
    return as_documents(sparse.csr_array(rng.multinomial(20, mixed / mixed.sum(axis=1, keepdims=True))))


def last_rounds(
    model: LDA | VariationalLDA, held: object, deviation: float, seed: int, rounds: int = 3
) -> tuple[dict[str, Array], Array]:
    """The state after noised rounds, and the last sum as it was without noise."""
    rng, memory = np.random.default_rng(seed), {}
    state = dict(model.start([f"w{v}" for v in range(held.counts.shape[1])], rng))
    for _ in range(rounds):
        clipped_sum = sum_of(model.query(model.for_party(state, "")), held, memory, rng=rng)
        counts = clipped_sum.blocks()["counts"]
        state = dict(
            model.update(state, Answer({"counts": counts + rng.normal(0, deviation, counts.shape)}, deviation=deviation))
        )
    return state, counts


@pytest.mark.parametrize("kind", [LDA, VariationalLDA])
def test_words_of_planted_topics_stand_above_little_noise_and_not_above_much(kind: type) -> None:
    rng = np.random.default_rng(6)
    topics, model = rng.dirichlet(np.full(100, 0.05), 5), kind(n_topics=5)
    held = documents(rng, topics)
    assert np.mean(top_words_above_noise(model, last_rounds(model, held, 2.0, 0, rounds=12)[0], 5)) > 0.9
    assert not np.any(top_words_above_noise(model, last_rounds(model, held, 200.0, 0)[0], 5))
    assert top_words_above_noise(model, last_rounds(model, held, 0.0, 0)[0], 5) is None


def test_weights_of_a_factorisation_are_tested_too_and_parties_get_no_noised_sum() -> None:
    rng, model = np.random.default_rng(7), NMF(n_topics=5)
    held = documents(rng, rng.dirichlet(np.full(100, 0.05), 5))
    state = dict(model.start(held.vocabulary, rng))
    for _ in range(8):
        clipped_sum = sum_of(model.query(model.for_party(state, "")), held, rng=rng)
        noised = {name: total + rng.normal(0, 0.3, total.shape) for name, total in clipped_sum.blocks().items()}
        state = dict(model.update(state, Answer(noised, deviation=0.3)))
    assert np.mean(top_words_above_noise(model, state, 3)) > 0.8
    assert model.fits(state, 100)
    assert set(model.for_party(state, "")) == {"weights", "words", "step"}


def test_a_table_of_noise_alone_has_no_word_above_it() -> None:
    noise = np.random.default_rng(5).normal(size=(TOPICS, WORDS))
    assert not stand_above(noise, 1.0).any()
    assert not stand_above(-np.abs(noise), 1.0).any()
    assert not stand_above(np.zeros((TOPICS, WORDS)), 0.0).any()
