"""Other forms of `lda-vi`: oracles, which spend a budget on less, and how version 0.1.0 read noised counts.

What an oracle knows comes from a training without noise on the same documents. So no figure of an oracle is private: they show
limits only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr

from lab.documents import JudgedDocuments
from lab.training import exact_sum
from securetm.contracts import Answer, Array, State
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.plans.agreement import Agreement

_CLEAR_ROUNDS = 20  # without noise


@dataclass(frozen=True)
class BeginsAtTruth(Agreement):
    """An agreement whose training begins at known counts; what is public of the words stays public."""

    known: Array | None = None

    @classmethod
    def after(cls, agreement: Agreement, known: Array) -> Self:
        """The same agreement, which knows the counts."""
        return cls(**{field.name: getattr(agreement, field.name) for field in fields(agreement)}, known=known)

    def start(self, vocabulary: Sequence[str], frequencies: Array | None = None) -> State:
        """The known counts."""
        assert self.known is not None
        return {**super().start(vocabulary, frequencies), "counts": self.known}


class KnownAssignments(VariationalLDA):
    """Its documents answer by the true topics; of the sum it believes what it would of any other, from equal topics on."""

    def update(self, state: State, answer: Answer) -> State:
        """Reads the sum as if every topic had had the word frequencies."""
        return super().update({**state, "counts": np.ones_like(state["counts"])}, answer)


def knowing_topics(agreement: Agreement, documents: JudgedDocuments) -> Agreement:
    """The oracle that knows the true topics, and estimates words and weights."""
    return BeginsAtTruth.after(agreement, _truth(agreement, documents))


def knowing_assignments(agreement: Agreement, documents: JudgedDocuments) -> Agreement:
    """The oracle whose documents know their topics, and that estimates each topic's words."""
    known = _truth(agreement, documents)
    model = KnownAssignments(**agreement.plan.model.settings)
    return BeginsAtTruth(**{**vars(BeginsAtTruth.after(agreement, known)), "model": model})


def _truth(agreement: Agreement, documents: JudgedDocuments) -> Array:
    plan = agreement.plan
    model = VariationalLDA(**plan.model.settings)
    return _true_counts(model, documents, 1 - plan.training.held_out, plan.seed, plan.privacy.radius)


@lru_cache(1)
def _true_counts(model: VariationalLDA, documents: JudgedDocuments, share: float, seed: int, radius: float) -> Array:
    """The counts that the model finds without noise on the documents that the parties train on."""
    known = documents.held_back(share, seed)[0]
    state = model.start(known.vocabulary, np.random.default_rng(seed))
    for _ in range(_CLEAR_ROUNDS):
        state = model.update(state, Answer(exact_sum(model.query(state), known, np.random.default_rng(0), radius)))
    found: Array = state["counts"]
    return found


_DEVIATIONS = 2.0  # of the noise: a smaller count is replaced
_BEYOND = 20.0  # deviations below 0, beyond which a series is more exact than the quotient
_LEAST = 0.01  # the least share of a count's expectation
_SURE = 3.0  # deviations by which a table must differ from word frequencies before any difference is believed
_WORDS, _TABLE, _ROUNDS = "threshold_words", "threshold_table", "threshold_rounds"


@dataclass(frozen=True)
class ThresholdLDA(VariationalLDA):
    """`lda-vi` of version 0.1.0; each sum replaces the one before it."""

    def update(self, state: State, answer: Answer) -> State:
        """Counts below the threshold become their word's mean, and the table is kept for the end."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        counts, deviation = answer.total["counts"], answer.deviation
        if deviation == 0:
            return {**after, "counts": counts}
        words, rounds = state.get(_WORDS, 0.0) + counts.sum(axis=0), state.get(_ROUNDS, np.zeros(2))
        kept = {_TABLE: counts, _WORDS: words, _ROUNDS: np.array([rounds[0] + 1, deviation])}
        return {**after, **kept, "counts": above_threshold(counts, _DEVIATIONS * deviation)}

    def topics(self, state: State) -> Array:
        """Each topic's words: the shrunken counts where there was noise."""
        counts = shrunken(state[_TABLE], state[_WORDS], *state[_ROUNDS]) if _TABLE in state else self.smoothed(state)
        shares: Array = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The counts to answer about."""
        return {name: state[name] for name in ("counts", "step")}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ThresholdLDA:
        """The model with settings as a plan has them."""
        return cls(**settings)


def above_threshold(counts: Array, least: float) -> Array:
    """Each smaller count of topics x words replaced by the mean of its word over all topics where it is smaller."""
    clear = counts > least
    means = np.where(clear, 0, counts).sum(axis=0) / np.maximum((~clear).sum(axis=0), 1)
    found: Array = np.where(clear, counts, np.maximum(means, 0))
    return found


def shrunken(counts: Array, words: Array, rounds: float, deviation: float) -> Array:
    """Positive counts, each pulled towards its topic's share of its word's total, the more the larger the noise is."""
    totals = _likely(words / rounds, deviation * np.sqrt(len(counts) / rounds))
    topics = _likely(counts.sum(axis=1), deviation * np.sqrt(counts.shape[1]))
    expected = np.outer(topics / topics.sum(), totals)
    spread = _spread(counts, expected, deviation)
    if spread == 0:
        return expected
    believed = 1 / (1 + deviation**2 / (spread * expected**2))
    found = np.maximum(expected + believed * (counts - expected), _LEAST * expected)
    scaled: Array = found * (totals / found.sum(axis=0))
    return scaled


def _spread(counts: Array, expected: Array, deviation: float) -> float:
    """The variance of true counts around their expectation, as a multiple of its square; 0 where noise explains it all."""
    apart, by_noise = float(np.square(counts - expected).sum()), expected.size * deviation**2
    if apart <= by_noise * (1 + _SURE * np.sqrt(2 / expected.size)):
        return 0.0
    return (apart - by_noise) / float(np.square(expected).sum())


def _likely(found: Array, deviation: float) -> Array:
    """Posterior means of counts behind noise, with an exponential prior around their mean."""
    mean = max(float(found.mean()), 1e-3 * deviation, 1e-9)
    at = (found - deviation**2 / mean) / deviation
    near = np.maximum(at, -_BEYOND)
    means = near + np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(near))
    far = -1.0 / np.minimum(at, -_BEYOND)
    likely: Array = deviation * np.where(at < -_BEYOND, far - 2 * far**3 + 10 * far**5, means)
    return likely
