"""A party's table of words and topics out of what iFTM sends of it: shares of whole counts are the counts.

It undoes the topic-wise normalisation by rational reconstruction. Noise in the words it does not undo; it takes off its mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.leakage.attack import Attack, Counted, Effort, Example, Judged, Truth
from securetm.leakage.rational import counts_behind
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, Heard, said_by_parties
from securetm.leakage.rebuilt import in_words
from securetm.leakage.views import VOCABULARY, View
from securetm.mechanisms.laplace_counts import LaplaceCounts

TOPICS = "topics"
BEHIND, REAL = "counts behind the shares that are exact", "counts of real words that are exact"
NEAR = "counts of real words that are off by two at most"
SHOWN, USED = "words of topics that are named", "named words that the topic really has"


@dataclass(frozen=True)
class Table:
    """What one party's answer of one round is taken for: counts as they were normalised, and an estimate of the real ones."""

    serial: int
    party: str
    counted: Array
    real: Array


def attack(view: View, effort: Effort) -> tuple[Table, ...]:
    """Run by the adversary: every party's table, as long as there are no more documents' worth of answers than wanted."""
    heard = [one for one in said_by_parties(view) if TOPICS in one.blocks]
    return tuple(_table(one, view) for one in heard[: effort["tables"]])


def _table(heard: Heard, view: View) -> Table:
    rows = np.asarray(heard.blocks[TOPICS], dtype=np.float64)[:, :-1]  # the last number is how much data the party has
    counted = np.zeros(rows.shape, dtype=np.int64)
    for topic, row in enumerate(rows):
        found = counts_behind(row)
        if found is not None:
            counted[topic] = found.counts
    return Table(heard.asked.serial, heard.party, counted, _without_noise(counted, view))


def _without_noise(counted: Array, view: View) -> Array:
    """What is expected of the noise alone, taken off: a slot adds as much to every word, whatever it holds."""
    each = _mean_noise(view)
    if each == 0.0:
        return counted
    slots = counted.sum(axis=1, keepdims=True) / (1.0 + counted.shape[1] * each)
    real: Array = np.maximum(np.rint(counted - slots * each), 0.0).astype(np.int64)
    return real


def _mean_noise(view: View) -> float:
    """Of discrete Laplace noise on an empty count, cut at a threshold below 1: r / (1 - r^2) with r = exp(-epsilon)."""
    noise = [part for part in view.public.profile.mechanisms if isinstance(part, LaplaceCounts)]
    ratio = math.exp(-noise[0].epsilon) if noise and noise[0].distribution == "discrete" else 0.0
    return ratio / (1.0 - ratio * ratio)


def judge(tables: tuple[Table, ...], truth: Truth) -> Judged:
    """Run by the judge: entries that are not zero, compared one by one."""
    assert truth.tables is not None
    pairs = [(table, truth.tables(table.serial, table.party)) for table in tables]
    behind = [(table.counted, held.counted) for table, held in pairs]
    real = [(table.real, held.real) for table, held in pairs]
    named = sum(int(((guess > 0) & (held > 0)).sum()) for guess, held in real)
    measures = {
        BEHIND: _exact(behind),
        REAL: _exact(real),
        NEAR: _exact(real, within=2),
        SHOWN: Counted(named, sum(int((held > 0).sum()) for _, held in real)),
        USED: Counted(named, sum(int((guess > 0).sum()) for guess, _ in real)),
    }
    return Judged(measures, tuple(_examples(real[:1], truth.vocabulary)))


def _exact(pairs: Iterable[tuple[Array, Array]], within: int = 0) -> Counted:
    """Of the entries that are not zero, how many were found to the last count, or within a few."""
    hits = of = 0
    for guess, held in pairs:
        there = held > 0
        hits, of = hits + int((np.abs(guess[there] - held[there]) <= within).sum()), of + int(there.sum())
    return Counted(hits, of)


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
        SHOWN: "word of a topic",
        USED: "named word",
    },
    attack=attack,
    judge=judge,
    efforts=("tables",),
    limits=(
        "continuous noise, which leaves no whole numbers behind; then the scale of the shares is found by their periodogram",
        "what differences between rounds tell of words in rare documents",
    ),
    remark="The paper (section 3) speaks of the normalised matrix as the result of “a lossless encryption mechanism”. It is "
    "no encryption: shares of whole counts give the counts back. What hides words is the noise alone.",
)
