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
    """Every document once per epoch, in an order drawn anew for each epoch; the last batch may be short."""

    def on_documents(self, documents: Any, terms: Terms, desk: Desk) -> Any:
        """The party's batch for this round, or all its documents if the question asks for no batch."""
        if terms.batch == 0 or len(documents) == 0:
            return documents
        rows = batch_rows(len(documents), terms.batch, desk.cohort.number, desk.cohort.seed)
        return documents.select(rows)


def batch_rows(documents: int, batch: int, number: int, seed: int) -> Array:
    """The rows of batch `number` of a corpus that is read in shuffled epochs."""
    epoch, place = divmod(number, -(-documents // batch))
    return _epoch_order(documents, seed, epoch)[place * batch : (place + 1) * batch]


@lru_cache(maxsize=64)
def _epoch_order(documents: int, seed: int, epoch: int) -> Array:
    return np.random.default_rng([seed, epoch]).permutation(documents)
