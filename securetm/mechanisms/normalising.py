"""iFTM's topic-wise normalisation: each topic of a party's matrix sums to one before it is sent. It protects nothing.

Ratios of whole counts are the counts: rational reconstruction gives them back exactly, topic by topic, from float64 or float32.
So this claims nothing and spends nothing. It belongs to the paper's messages, and what protects them is noise.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array, Cohort, Domain, Mechanism, Needs, RoundContext, Terms
from securetm.data_classes import dataclass, replace

TOPICS = "topics"  # the block it is for: one row per topic, weights of the words, then the party's amount of data


@dataclass(frozen=True)
class TopicWise(Mechanism):
    """Divides each topic's weights by their sum. A topic without weight stays zero. Other vectors pass."""

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return replace(terms, domain=Domain.REAL) if _concerns(terms) else terms

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party, on one row per topic. The last number of a row is the party's amount of data and stays."""
        if not _concerns(terms):
            return vector
        rows = np.array(vector, dtype=np.float32 if terms.bits == 32 else np.float64)
        weights = np.asarray(vector, dtype=np.float64)[:, :-1]
        sums = weights.sum(axis=1, keepdims=True)
        rows[:, :-1] = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
        return rows


def _concerns(terms: Terms) -> bool:
    return terms.needs is Needs.EACH and terms.layout[0].name == TOPICS
