"""A party's table of words and topics from what iFTM sends of it: shares of whole counts give the counts back.

Rational reconstruction undoes the normalisation of each topic. Noise in the words is not undone; its mean is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.parts.reconstruction_scores import in_words
from securetm.auditing.parts.shares import noise_of, table_behind
from securetm.auditing.record import Example
from securetm.auditing.views import BY_PARTIES, AdversaryView, party_vectors
from securetm.contracts import Array
from securetm.data_classes import dataclass

TOPICS = "topics"
_HUNDREDTH = 0.005  # the precision of a reconstructed sum of continuous noise; whole numbers are exact
BEHIND, REAL = "counts behind the shares that are exact", "counts of real words that are exact"
NEAR = "counts of real words that are off by two at most"
PLACED, PLACED_AT_ALL = "occurrences of words that are counted in their topic", "occurrences of words that are counted at all"
SHOWN, USED = "words of topics that are named", "named words that the topic really has"

Pairs = Iterable[tuple[Array, Array]]  # of guessed and true counts


@dataclass(frozen=True)
class ReconstructedTable:
    """The estimate of one party's table in one round: the counts that were normalised, and the real ones."""

    serial: int
    party: str
    counted: Array
    real: Array


def attack(view: AdversaryView, effort: Effort) -> tuple[ReconstructedTable, ...]:
    vectors = [one for one in party_vectors(view) if TOPICS in one.blocks]
    noise, found = noise_of(view.public.profile, len(view.vocabulary())), []
    for vector in vectors[: effort["tables"]]:
        rows = np.asarray(vector.blocks[TOPICS], dtype=np.float64)
        slots = float(rows[:, -1].max(initial=0.0))  # the last number of a row is how much data the party has
        found.append(ReconstructedTable(vector.round.serial, vector.party, *table_behind(rows[:, :-1], slots, noise)))
    return tuple(found)


def judge(tables: tuple[ReconstructedTable, ...], truth: GroundTruth) -> Score:
    assert truth.tables is not None
    pairs = [(table, truth.tables(table.serial, table.party)) for table in tables]
    real = [(table.real, held.real) for table, held in pairs]
    there = [(guess > 0, held > 0) for guess, held in real]
    measures = {
        BEHIND: _near(((table.counted, held.counted) for table, held in pairs), _HUNDREDTH),
        REAL: _near(real, 0.0),
        NEAR: _near(real, 2.0),
        PLACED: _placed(real),
        PLACED_AT_ALL: _placed((guess.sum(axis=0), held.sum(axis=0)) for guess, held in real),
        SHOWN: Proportion.recall(there),
        USED: Proportion.precision(there),
    }
    words, rows = truth.vocabulary, [pair for table, held in real[:1] for pair in zip(table[:2], held[:2], strict=True)]
    texts = [(in_words(held.astype(np.int64), words), in_words(guess, words)) for guess, held in rows]
    exact = [bool((guess == held).all()) for guess, held in rows]
    return Score(measures, tuple(Example(*both, right) for both, right in zip(texts, exact, strict=True)))


def _placed(pairs: Pairs) -> Proportion:
    """Of the real occurrences, how many the guess has under the same word, and in the same topic if topics are separate."""
    return Proportion.over((int(np.minimum(guess, held).sum()), int(held.sum())) for guess, held in pairs)


def _near(pairs: Pairs, within: float) -> Proportion:
    """Of the entries that are not zero, how many are off by at most `within`."""
    return Proportion.recall((np.abs(guess - held) <= within, held > 0) for guess, held in pairs)


ATTACK = Attack(
    name="count_reconstruction",
    title="A party's word counts from its normalised topics",
    citation="rational reconstruction of integers from their ratios; on Jiang et al. 2021 (iFTM), section 3",
    cost="milliseconds for a topic",
    given="the words, and how large the noise on them is",
    either=BY_PARTIES,
    models=("lda-matched", "sentence-lda-matched"),
    measures={
        **dict.fromkeys((BEHIND, REAL, NEAR), "count of a word in a topic"),
        **dict.fromkeys((PLACED, PLACED_AT_ALL), "occurrence of a word"),
        SHOWN: "word of a topic",
        USED: "named word",
    },
    bears_on=("inference",),
    attack=attack,
    judge=judge,
    efforts=("tables",),
    limits=(
        "large topics behind continuous noise: single precision then keeps no trace of the sum, and the attack estimates it",
        "how many occurrences a guess from other texts would place (half to two thirds, by other parties' words)",
        "the noise itself: it subtracts only the mean, because the noise is drawn once and stays the same",
        "differences between rounds, which show words of rare documents (rare_documents)",
    ),
    remark="The paper (section 3) says that the normalised matrix “can be considered as the result of a lossless encryption "
    "mechanism”. It is no encryption: the shares of whole counts give the counts without a key. Only the noise hides words, "
    "and it hides single occurrences, not how often a party uses a word.",
)
