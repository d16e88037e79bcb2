"""The sample of a party's documents on which models are compared, so that a comparison does not take longer than the training.

It chooses; it compares nothing. A corpus that is no larger than the sample is taken whole.
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
    """One party's documents, as far as the comparison looks at them."""

    documents: PartyDocuments
    judged: float  # how many held-out documents each that was drawn stands for
    drawn: bool  # whether anything was left out


def sample_of(documents: PartyDocuments, parties: int, seed: int) -> Sampled:
    """Run by a party for itself: the same documents at every call, chosen by the plan's public seed."""
    assert documents.train is not None
    assert documents.held_out is not None
    assert documents.agreed is not None
    train, agreed = (_drawn(part, MOST_TRAINED, seed) for part in (documents.train, documents.agreed))
    held_out = _drawn(documents.held_out, judged_each(parties), seed)
    drawn = (len(train), len(held_out)) != (len(documents.train), len(documents.held_out))
    each = len(documents.held_out) / max(len(held_out), 1)
    return Sampled(replace(documents, train=train, agreed=agreed, held_out=held_out), each, drawn)


def judged_each(parties: int) -> int:
    """At most so many held-out documents of each party are judged."""
    return max(1, MOST_JUDGED // max(parties, 1))


def _drawn(corpus: Corpus, most: int, seed: int) -> Corpus:
    if len(corpus) <= most:
        return corpus
    return corpus.select(np.sort(np.random.default_rng([seed, most]).choice(len(corpus), most, replace=False)))
