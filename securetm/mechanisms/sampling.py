"""Chooses which documents of a party take part in a round: by secret coins, or in batches that follow from their keys.

It bounds nothing. Only the coins amplify privacy; whoever knows the keys knows the batches, so their terms keep a sampling rate
of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array, Cohort, Entropy, Mechanism, RoundContext, Sampling, Terms, Unit
from securetm.data_classes import dataclass, replace
from securetm.entropy import words
from securetm.errors import NoPersons, check_setting

AMPLIFIED = (Unit.DOCUMENT, Unit.PERSON)  # whose presence a coin decides; a party or a single word is there or not


@dataclass(frozen=True)
class PoissonSample(Mechanism):
    """Where a question asks for a batch, each document (or person) takes part with probability `rate`.

    The coins are independent and come from the operating system. They are neither stored nor sent, and nor is their number.
    They are exact, with probability floor(rate x 2^64) / 2^64, so the real probability is never above the rate.
    """

    rate: float
    sampling: ClassVar[Sampling] = Sampling.COINS
    plan_numbers: ClassVar[Mapping[str, str]] = {"rate": "rate"}

    def __post_init__(self) -> None:
        check_setting(self, "rate", 0 < self.rate <= 1, "must be above 0 and at most 1")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same terms with the sampling rate and without a batch: the coins choose the documents instead."""
        if terms.batch == 0:
            return terms
        return replace(terms, batch=0, sampling=terms.sampling * self.rate if terms.unit in AMPLIFIED else terms.sampling)

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """Run by a party: the documents that its coins chose, perhaps none. No other role learns which, or how many."""
        if terms.batch == 0:
            return documents
        if terms.unit is not Unit.PERSON:
            return documents.select(self._chosen(len(documents), context.entropy))
        if documents.persons is None:
            raise NoPersons()
        people, whose = np.unique(documents.persons, return_inverse=True)
        chosen = np.zeros(len(people), dtype=bool)
        chosen[self._chosen(len(people), context.entropy)] = True
        return documents.select(np.flatnonzero(chosen[whose]))

    def _chosen(self, n: int, entropy: Entropy) -> Array:
        return tossed(n, int(Fraction(self.rate) * 2**64), entropy)


@dataclass(frozen=True)
class ShuffledBatches(Mechanism):
    """Draws a full batch for each round anew, by the keys of the documents."""

    sampling: ClassVar[Sampling] = Sampling.PUBLIC

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """The party's batch for this round, or all its documents if the question asks for no batch."""
        if terms.batch == 0 or len(documents) == 0:
            return documents
        rows = batch_rows(np.asarray(documents.keys), terms.batch, context.cohort.number, context.cohort.seed)
        return documents.select(rows)


_RARE = 6  # so many fair coins in a row are rarer than one in 50


def tossed(items: int, below: int, entropy: Entropy) -> Array:
    """The items that are chosen, in rising order: each with the probability below / 2^64, independently of the others."""
    fair = 64 - below.bit_length()  # below / 2^64 is less than 2^-fair
    if fair >= _RARE and items > BLOCK_DOCUMENTS:
        return _rarely(items, below, fair, entropy)
    coins = words(entropy, items)
    return np.arange(items) if below == 2**64 else np.flatnonzero(np.less(coins, np.uint64(below)))


def _rarely(items: int, below: int, fair: int, entropy: Entropy) -> Array:
    left = items
    for _ in range(fair):
        left = _heads(left, entropy)
    if not left or not below:
        return np.zeros(0, dtype=np.int64)
    last = words(entropy, left) >> np.uint64(fair)
    return np.sort(_distinct(left, items, entropy)[np.less(last, np.uint64(below))])


def _heads(coins: int, entropy: Entropy) -> int:
    """How many of so many fair coins show heads: each is a bit."""
    bits = np.frombuffer(entropy.bytes(-(-coins // 8)), dtype=np.uint8)
    surplus = -coins % 8
    return int(np.bitwise_count(bits).sum()) - int(bits[-1:].sum() & ((1 << surplus) - 1)).bit_count()


def _distinct(wanted: int, items: int, entropy: Entropy) -> Array:
    """So many different items in the order in which they are drawn, every choice as likely as any other."""
    whole = np.uint64(2**64 // items * items % 2**64)  # words from here on would favour some items; 0: none would
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < wanted:
        fresh = words(entropy, wanted - len(drawn))
        fresh = fresh[fresh < whole] if whole else fresh
        _, first = np.unique(both := np.concatenate([drawn, (fresh % np.uint64(items)).astype(np.int64)]), return_index=True)
        drawn = both[np.sort(first)]
    return drawn


_LOOKED_AT = 16  # documents for each one of the batch


def batch_rows(keys: Array, batch: int, number: int, seed: int) -> Array:
    """The rows of the documents in batch `number`, in the order of their draws.

    Every batch is full, so that no sum holds fewer documents than agreed; a party with fewer than a batch gives them all.
    """
    documents = len(keys)
    if batch >= documents:
        return np.arange(documents)
    begin, salt = np.random.SeedSequence([seed, number]).generate_state(2, np.uint64)
    near = np.arange(documents)
    if (looked_at := _LOOKED_AT * batch) < documents:
        places, rows = _circle_of(_Keys(keys))
        first = int(np.searchsorted(places, begin))
        near = rows[np.arange(first, first + looked_at) % documents]
    draws = _mixed(_mixed(keys[near] ^ salt) + salt)
    return near[np.lexsort((keys[near], draws))[:batch]]


class _Keys:
    """An array of keys that is known by its identity."""

    def __init__(self, held: Array) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keys) and self.held is other.held


@lru_cache(maxsize=16)
def _circle_of(keys: _Keys) -> tuple[Array, Array]:
    """Where the documents with these keys lie, in rising order, and the row of each."""
    places = _mixed(keys.held)
    rows = np.argsort(places, kind="stable")
    return places[rows], rows


def _mixed(z: Array) -> Array:
    """The last step of SplitMix64, which gives distinct numbers for distinct ones."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Array = z ^ (z >> np.uint64(31))
    return found
