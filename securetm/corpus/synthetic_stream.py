"""Documents with known topics as a seeded stream: block by block, each from the seed and its own number. It writes no file.

The topics of a document follow LDA: the first token draws one, each later token takes that of an earlier token or draws anew,
as a Polya urn does, which needs no shares of topics. Words of a topic fall by Zipf's law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.keys import content_keys, secret_of
from securetm.errors import BadSetting

BLOCK = 65_536  # documents
_ETA = 0.1  # of the Dirichlet distribution that a topic's preference for each word is drawn from
_TWO_53 = 2.0**-53


@dataclass(frozen=True)
class SyntheticStream:
    """So many documents of one length. The same settings give the same documents, whichever blocks are asked for."""

    documents: int
    words: int = 2_000
    topics: int = 50
    length: int = 60
    alpha: float = 0.1
    seed: int = 0
    block_documents: int = BLOCK

    def __post_init__(self) -> None:
        for name in ("documents", "words", "topics", "length", "alpha", "block_documents"):
            if not getattr(self, name) > 0:
                raise BadSetting("SyntheticStream", name, str(getattr(self, name)), "must be above zero")

    @property
    def name(self) -> str:
        """What the documents' keys are made of: equal streams have equal keys."""
        return f"synthetic {self.seed}"

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.documents // self.block_documents)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The words, in alphabetical order, which is also that of their frequency."""
        width = len(str(self.words - 1))
        return tuple(f"term{number:0{width}d}" for number in range(self.words))

    @cached_property
    def beta(self) -> Array:
        """Topics x words: the share of each word in each topic."""
        rng = np.random.default_rng([self.seed, self.words, self.topics])
        drawn = rng.gamma(_ETA, size=(self.topics, self.words)) / np.arange(1.0, self.words + 1) + 1e-9
        shares: Array = drawn / drawn.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        return _alias_tables(self.beta)

    def tokens(self, block: int) -> Array:
        """The word of each token of a block: documents x length, int32."""
        first = block * self.block_documents
        out = np.empty((min(self.block_documents, self.documents - first), self.length), dtype=np.int32)
        start = np.random.SeedSequence([self.seed, block]).generate_state(1, np.uint64)[0]
        _draw(start, self.topics * self.alpha, *self._tables, out)
        return out

    def block(self, number: int) -> Corpus:
        """The documents of a block, in reading order and counted."""
        tokens = self.tokens(number)
        rows = np.arange(len(tokens)) + number * self.block_documents
        ends = np.arange(1, len(tokens) + 1) * self.length
        return Corpus.from_tokens(tokens.ravel(), ends, self.vocabulary, keys=self._keys(rows), name=self.name)

    def __iter__(self) -> Iterator[Corpus]:
        """The blocks, one after the other."""
        return (self.block(number) for number in range(self.blocks))

    def corpus(self) -> Corpus:
        """All documents in memory."""
        tokens = np.concatenate([self.tokens(number).ravel() for number in range(self.blocks)])
        ends = np.arange(1, self.documents + 1) * self.length
        keys = self._keys(np.arange(self.documents))
        return Corpus.from_tokens(tokens, ends, self.vocabulary, keys=keys, name=self.name)

    def _keys(self, rows: Array) -> Array:
        """A document's number in the stream is its id: without another one it would be the same."""
        return content_keys(secret_of(self.name), stream_digests(rows), np.zeros(len(rows), np.int64))


def stream_digests(rows: Array) -> Array:
    """What documents of a stream are called by: their numbers, and zeros."""
    return np.column_stack([rows.astype("<u8"), np.zeros(len(rows), "<u8")]).view(np.uint8)


def _alias_tables(shares: Array) -> tuple[Array, Array]:
    """Walker's alias tables of several laws: with which chance a place keeps its own number, and its other number."""
    laws, size = shares.shape
    keeps, others = np.ones((laws, size)), np.tile(np.arange(size, dtype=np.int32), (laws, 1))
    for law in range(laws):
        _fill(shares[law] * size, keeps[law], others[law])
    return keeps, others


@njit(cache=True)
def _fill(weights: Array, keeps: Array, others: Array) -> None:
    small, large = np.empty(len(weights), np.int64), np.empty(len(weights), np.int64)
    poor = rich = 0
    for i in range(len(weights)):
        if weights[i] < 1.0:
            small[poor] = i
            poor += 1
        else:
            large[rich] = i
            rich += 1
    while poor and rich:
        poor -= 1
        low, high = small[poor], large[rich - 1]
        keeps[low], others[low] = weights[low], high
        weights[high] -= 1.0 - weights[low]
        if weights[high] < 1.0:
            rich -= 1
            small[poor] = high
            poor += 1


@njit(cache=True, nogil=True)
def _draw(start: Any, concentration: float, keeps: Array, others: Array, out: Array) -> None:
    """The tokens of each document, by SplitMix64 from where the block's stream begins."""
    topics, words = keeps.shape
    drawn = np.empty(out.shape[1], np.int64)
    state = np.uint64(start)
    for d in range(out.shape[0]):
        for i in range(out.shape[1]):
            state, chance = _next(state)
            place = chance * (i + concentration)
            topic = drawn[int(place)] if place < i else min(int((place - i) / concentration * topics), topics - 1)
            drawn[i] = topic
            state, chance = _next(state)
            place = chance * words
            word = min(int(place), words - 1)
            out[d, i] = word if place - word < keeps[topic, word] else others[topic, word]


@njit(cache=True, inline="always")
def _next(state: Any) -> Any:
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    z = np.uint64((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    z = z ^ (z >> np.uint64(31))
    return state, np.float64(z >> np.uint64(11)) * _TWO_53
