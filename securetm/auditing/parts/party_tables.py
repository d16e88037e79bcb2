"""A party's topics as counts of words, from what it sent; and how well a document or a subject fits them.

It reads no message. Masked numbers, which are no counts, give a table as well; it means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from securetm.auditing.parts.rational_reconstruction import counts_behind
from securetm.auditing.reading import ReadVector
from securetm.contracts import Array

TOPICS, COUNTS = "topics", "counts"  # blocks of the matched models, and of models whose answers are summed
_ROUNDS = 30  # of folding a document in
_FLOOR = 1e-3  # the count of a word that a topic does not have


def tables_by_party(vectors: Iterable[ReadVector]) -> dict[str, Array]:
    """Each party's last table, topics x words, as whole counts if its shares come from such."""
    return {one.party: _counts(one) for one in vectors if TOPICS in one.blocks or COUNTS in one.blocks}


def _counts(vector: ReadVector) -> Array:
    if COUNTS in vector.blocks:
        return np.maximum(np.asarray(vector.blocks[COUNTS], dtype=np.float64), 0.0)
    rows = np.maximum(np.asarray(vector.blocks[TOPICS], dtype=np.float64), 0.0)
    table, amount = rows[:, :-1], float(rows[:, -1].max(initial=0.0))  # the last number is how much data the party has
    sums = table.sum(axis=1)
    if not np.all((np.abs(sums - 1.0) < 1e-3) | (sums == 0.0)):  # these are no shares
        return table
    behind = [counts_behind(row) for row in table]
    if all(found is not None or not row.any() for found, row in zip(behind, table, strict=True)):
        return np.array([row if found is None else found for found, row in zip(behind, table, strict=True)], dtype=float)
    return table * amount / max(len(table), 1)


def fits(documents: Array, table: Array) -> Array:
    """Each document's log-likelihood in these topics, with its best shares of topics (folding in)."""
    smooth = table + _FLOOR
    topics = smooth / smooth.sum(axis=1, keepdims=True)
    shares = np.full((len(documents), len(topics)), 1.0 / len(topics))
    for _ in range(_ROUNDS):
        expected = documents / (shares @ topics)
        shares *= expected @ topics.T
        shares /= shares.sum(axis=1, keepdims=True)
    likelihood: Array = (documents * np.log(shares @ topics)).sum(axis=1)
    return likelihood


def shares_of(subjects: Iterable[Array], tables: Mapping[str, Array], noise: float = 0.0) -> dict[str, Array]:
    """Each subject's share of all words of each party. `noise` is the mean noise of a count."""
    found, wanted = {}, list(subjects)
    for party, table in tables.items():
        words = table.sum(axis=0)
        slots = words.sum() / (1.0 + len(words) * noise)
        real = np.maximum(words - slots * noise, 0.0)
        found[party] = np.array([real[subject].sum() for subject in wanted]) / max(float(real.sum()), 1e-300)
    return found
