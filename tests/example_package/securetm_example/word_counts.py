"""How often a party used each word, read from its own answer: the expected counts of all topics add up to the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.views import ANSWER, REQUEST, SEALED, VOCABULARY, AdversaryView, party_vectors
from securetm.contracts import Array
from securetm.federation.questions import TRAIN

COUNTS = "words of a party counted exactly"


@dataclass(frozen=True)
class PartyWords:
    """What is said to have been in one party's documents of one round."""

    serial: int
    party: str
    counts: Array


def attack(view: AdversaryView, effort: Effort) -> tuple[PartyWords, ...]:
    """Adds each word's weights over the topics."""
    heard = [one for one in party_vectors(view) if one.round.question == TRAIN and "words" in one.blocks]
    chosen = sorted({one.round.serial for one in heard})[: effort["rounds"]]
    sums = [(one.round.serial, one.party, np.asarray(one.blocks["words"], dtype=float).sum(axis=0)) for one in heard]
    return tuple(PartyWords(serial, party, counts) for serial, party, counts in sums if serial in chosen)


def judge(told: tuple[PartyWords, ...], truth: GroundTruth) -> Score:
    """Of the words that a party used in a round: how many were counted exactly."""
    hits = of = 0
    for one in told:
        real = np.asarray(truth.batch(one.serial, one.party).sum(axis=0)).ravel()
        hits, of = hits + int((np.abs(one.counts - real)[real > 0] < 1e-6).sum()), of + int((real > 0).sum())
    return Score({COUNTS: Proportion(hits, of)})


ATTACK = Attack(
    name="word_counts",
    title="A party's word counts from its own answer",
    citation="an answer of expected counts, summed over topics, is the counts",
    cost="a moment",
    given="nothing but the messages",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("unigram-mixture",),
    measures={COUNTS: "word of a party in a round"},
    attack=attack,
    judge=judge,
)
