"""Which documents of a party take part in a round. Shuffled batches are for learning, not for privacy.

Their order follows from public numbers, so they give no amplification: their terms keep a sampling rate of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from securetm.contracts import Array, Desk, Mechanism, Terms


@dataclass(frozen=True)
class ShuffledBatches(Mechanism):
    """The documents in epochs, in an order drawn anew for each; a batch may reach from one epoch into the next."""

    def on_documents(self, documents: Any, terms: Terms, desk: Desk) -> Any:
        """The party's batch for this round, or all its documents if the question asks for no batch."""
        if terms.batch == 0 or len(documents) == 0:
            return documents
        rows = batch_rows(len(documents), terms.batch, desk.cohort.number, desk.cohort.seed)
        return documents.select(rows)


def batch_rows(documents: int, batch: int, number: int, seed: int) -> Array:
    """The rows of batch `number` of a corpus that is read in shuffled epochs, one after the other.

    Every batch is full, so that no sum holds fewer documents than agreed; a party with fewer than a batch gives them all.
    """
    if batch >= documents:
        return np.arange(documents)
    epoch, place = divmod(number * batch, documents)
    rows = _epoch_order(documents, seed, epoch)[place : place + batch]
    rest = _epoch_order(documents, seed, epoch + 1)
    return np.concatenate([rows, rest[~np.isin(rest, rows)][: batch - len(rows)]])


@lru_cache(maxsize=64)
def _epoch_order(documents: int, seed: int, epoch: int) -> Array:
    return np.random.default_rng([seed, epoch]).permutation(documents)
