"""Samples a party's documents for the comparison of models, so that it takes no longer than the training.

A corpus that is no larger than the sample is taken whole. It compares nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from securetm.corpus.corpus import Corpus
from securetm.federation.documents import PartyDocuments

MOST_TRAINED = 10_000  # documents from which a party learns alone
MOST_JUDGED = 5_000  # held-out documents of all parties together, on which each model is judged


@dataclass(frozen=True)
class Sampled:
    """The sample of one party's documents."""

    documents: PartyDocuments
    judged: float  # how many held-out documents each that was drawn stands for
    drawn: bool  # whether anything was left out


def sample_of(documents: PartyDocuments, parties: int, seed: int) -> Sampled:
    """Draws the sample. The plan's public seed decides it, so every call returns the same documents."""
    assert documents.train is not None
    assert documents.held_out is not None
    assert documents.agreed is not None
    train, agreed = (_drawn(part, MOST_TRAINED, seed) for part in (documents.train, documents.agreed))
    held_out = _drawn(documents.held_out, judged_each(parties), seed)
    drawn = (len(train), len(held_out)) != (len(documents.train), len(documents.held_out))
    each = len(documents.held_out) / max(len(held_out), 1)
    return Sampled(replace(documents, train=train, agreed=agreed, held_out=held_out), each, drawn)


def judged_each(parties: int) -> int:
    """Returns how many held-out documents of each party are judged at most."""
    return max(1, MOST_JUDGED // max(parties, 1))


def _drawn(corpus: Corpus, most: int, seed: int) -> Corpus:
    if len(corpus) <= most:
        return corpus
    return corpus.select(np.sort(np.random.default_rng([seed, most]).choice(len(corpus), most, replace=False)))
