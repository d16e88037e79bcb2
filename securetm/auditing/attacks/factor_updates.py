"""Which words a party's documents hold, from the difference of the topics that it sends after its own epochs of FedNMF.

A gradient step raises a topic's weight of a word that documents hold, and lowers the weights of words that they lack. So the
words whose weights rise are those that occur. The attack finds no document: a difference is a sum over all of a party's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from securetm.auditing.adversary_view import VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Effort, GroundTruth, RoundReconstruction, Score
from securetm.auditing.parts.reconstruction_scores import WORDS, judged
from securetm.auditing.reading import BY_PARTIES, REQUEST, ReadVector, party_vectors
from securetm.contracts import Array
from securetm.models.nmf.fednmf import FedNMF

_DIFFERENCE = "difference"


def attack(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Names the words whose weights rise, in each party's own answer."""
    found = (one for one in party_vectors(view) if _DIFFERENCE in one.blocks)
    return tuple(_named(found, cast(FedNMF, view.public.model), effort["answers"]))


def _named(vectors: Iterator[ReadVector], model: FedNMF, most: int) -> Iterator[RoundReconstruction]:
    for _, vector in zip(range(most), vectors, strict=False):
        topics: Array = model.split(np.asarray(vector.blocks[_DIFFERENCE], dtype=np.float64))[0]
        risen = topics.reshape(model.n_topics, -1).sum(axis=0) > 0
        yield RoundReconstruction(vector.round.serial, vector.party, words=np.flatnonzero(risen))


def judge(found: tuple[RoundReconstruction, ...], truth: GroundTruth) -> Score:
    """Compares the named words with those of the party's documents."""
    return judged(found, truth, wanted=WORDS)


ATTACK = Attack(
    name="factor_updates",
    title="Which words a party uses, from its own difference of a factorisation's topics",
    citation="the step of FedNMF itself (Si et al. 2022, Algorithm 1): what a gradient adds to a topic is a sum of documents",
    cost="no time at all",
    given="the words, and the model's settings",
    needs=(REQUEST, VOCABULARY),
    either=BY_PARTIES,
    models=("fednmf",),
    measures=WORDS,
    attack=attack,
    judge=judge,
    efforts=("answers",),
    limits=(
        "which words stand in one document",
        "how often a word occurs",
        "several rounds of one party, whose differences show more together than each alone",
    ),
)
