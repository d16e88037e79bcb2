"""A party's table of words and topics out of what iFTM sends of it: shares of whole counts are the counts.

It undoes the topic-wise normalisation by rational reconstruction. Noise in the words it does not undo; it takes off its mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example
from securetm.leakage.parts.noised_shares import WordNoise, noise_of, table_behind
from securetm.leakage.parts.reconstruction_scores import in_words
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, ReadVector, party_vectors

TOPICS = "topics"
_HUNDREDTH = 0.005  # sums of continuous noise come back to so much; whole numbers are as right as ever
BEHIND, REAL = "counts behind the shares that are exact", "counts of real words that are exact"
NEAR = "counts of real words that are off by two at most"
PLACED, PLACED_AT_ALL = "occurrences of words that are counted in their topic", "occurrences of words that are counted at all"
SHOWN, USED = "words of topics that are named", "named words that the topic really has"


@dataclass(frozen=True)
class ReconstructedTable:
    """What one party's answer of one round is taken for: counts as they were normalised, and an estimate of the real ones."""

    serial: int
    party: str
    counted: Array
    real: Array


def attack(view: AdversaryView, effort: Effort) -> tuple[ReconstructedTable, ...]:
    """Run by the adversary: every party's table, as long as there are no more documents' worth of answers than wanted."""
    heard = [one for one in party_vectors(view) if TOPICS in one.blocks]
    noise = noise_of(view.public.profile, len(view.vocabulary()))
    return tuple(_table(one, noise) for one in heard[: effort["tables"]])


def _table(heard: ReadVector, noise: WordNoise) -> ReconstructedTable:
    rows = np.asarray(heard.blocks[TOPICS], dtype=np.float64)
    slots = float(rows[:, -1].max(initial=0.0))  # the last number of a row is how much data the party has
    return ReconstructedTable(heard.round.serial, heard.party, *table_behind(rows[:, :-1], slots, noise))


def judge(tables: tuple[ReconstructedTable, ...], truth: GroundTruth) -> Score:
    """Run by the judge: entries that are not zero, compared one by one."""
    assert truth.tables is not None
    pairs = [(table, truth.tables(table.serial, table.party)) for table in tables]
    behind = [(table.counted, held.counted) for table, held in pairs]
    real = [(table.real, held.real) for table, held in pairs]
    named = sum(int(((guess > 0) & (held > 0)).sum()) for guess, held in real)
    measures = {
        BEHIND: _exact(behind, within=_HUNDREDTH),
        REAL: _exact(real),
        NEAR: _exact(real, within=2),
        PLACED: _placed(real),
        PLACED_AT_ALL: _placed([(guess.sum(axis=0), held.sum(axis=0)) for guess, held in real]),
        SHOWN: Proportion(named, sum(int((held > 0).sum()) for _, held in real)),
        USED: Proportion(named, sum(int((guess > 0).sum()) for guess, _ in real)),
    }
    return Score(measures, tuple(_examples(real[:1], truth.vocabulary)))


def _placed(pairs: Iterable[tuple[Array, Array]]) -> Proportion:
    """Of the real occurrences, how many the guess has under the same word, and in the same topic where these are apart."""
    both = [(int(np.minimum(guess, held).sum()), int(held.sum())) for guess, held in pairs]
    return Proportion(sum(hits for hits, _ in both), sum(of for _, of in both))


def _exact(pairs: Iterable[tuple[Array, Array]], within: float = 0.0) -> Proportion:
    """Of the entries that are not zero, how many were found to the last count, or within a few."""
    hits = of = 0
    for guess, held in pairs:
        there = held > 0
        hits, of = hits + int((np.abs(guess[there] - held[there]) <= within).sum()), of + int(there.sum())
    return Proportion(hits, of)


def _examples(real: Iterable[tuple[Array, Array]], vocabulary: tuple[str, ...]) -> list[Example]:
    """The first two topics of a party: its counts of its most frequent words."""
    rows = [(guess, held.astype(np.int64)) for table, truth in real for guess, held in zip(table[:2], truth[:2], strict=True)]
    return [
        Example(in_words(held, vocabulary), in_words(guess, vocabulary), bool((guess == held).all())) for guess, held in rows
    ]


ATTACK = Attack(
    name="count_reconstruction",
    title="A party's word counts from its normalised topics",
    citation="rational reconstruction of integers from their ratios; on Jiang et al. 2021 (iFTM), section 3",
    cost="milliseconds for a topic",
    given="the words, and how large the noise on them is",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("lda-matched", "sentence-lda-matched"),
    measures={
        BEHIND: "count of a word in a topic",
        REAL: "count of a word in a topic",
        NEAR: "count of a word in a topic",
        PLACED: "occurrence of a word",
        PLACED_AT_ALL: "occurrence of a word",
        SHOWN: "word of a topic",
        USED: "named word",
    },
    attack=attack,
    judge=judge,
    efforts=("tables",),
    limits=(
        "large topics behind continuous noise: single precision then keeps no trace of the sum, and it is only estimated",
        "how many occurrences somebody would place who knows other texts only (half to two thirds, by other parties' words)",
        "the noise itself: its mean is taken off, and nothing else is known of it, as it is drawn once and stays",
        "what differences between rounds tell of words in rare documents (rare_documents)",
    ),
    remark="The paper (section 3) says that the normalised matrix “can be considered as the result of a lossless encryption "
    "mechanism”. It is no encryption: shares of whole counts give the counts back, without a key. What hides words is "
    "the noise alone, and it hides single occurrences, not how often a party uses a word.",
)
