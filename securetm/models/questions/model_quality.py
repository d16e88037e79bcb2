"""Questions about the quality of the shared model: how its top words stand together, and how well it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, ClippedSum, Documents, Memory, State, Terms, TopicModel
from securetm.corpus.held_documents import distinct
from securetm.data_classes import dataclass
from securetm.extras import sparse
from securetm.models.batches import chunks, with_zero
from securetm.models.quality import npmi, pairs_within, perplexity
from securetm.models.questions.words import presence_terms, total_of


def rows_of_held(counts: Any, words: Array, pairs: Array) -> Any:
    """The rows of documents. Words are in order, and pairs in that of their first and then of their second word."""
    table = sparse.csr_array(counts)
    if not table.has_sorted_indices:
        table = table.sorted_indices()
    places = np.full(table.shape[1], -1, dtype=np.int64)
    places[words] = np.arange(len(words))
    seconds = places[pairs[:, 1]]
    begins = np.searchsorted(places[pairs[:, 0]], np.arange(len(words) + 1))
    facts = (table.indptr.astype(np.int64), table.indices, table.data != 0, places, begins, seconds)
    ends = np.zeros(table.shape[0] + 1, dtype=np.int64)
    _fill(*facts, ends, np.empty(0, dtype=np.int32))
    np.cumsum(ends, out=ends)
    columns = np.empty(ends[-1], dtype=np.int32)
    _fill(*facts, ends, columns)
    return sparse.csr_array((np.ones(len(columns), np.int64), columns, ends), (table.shape[0], 1 + len(words) + len(pairs)))


@njit(cache=True, nogil=True)
def _fill(
    starts: Array, words: Array, there: Array, places: Array, begins: Array, seconds: Array, ends: Array, columns: Array
) -> None:
    """Writes the columns of each row; where there is no room for any, only the number of them."""
    held, most = np.empty(len(begins), np.int64), len(begins) - 1
    for d in range(len(starts) - 1):
        count = 0
        for i in range(starts[d], starts[d + 1]):
            if there[i] and places[words[i]] >= 0:
                held[count] = places[words[i]]
                count += 1
        if len(columns) == 0:
            ends[d + 1] = 1 + count + _paired(held, count, begins, seconds, 0, 0, columns)
            continue
        at = ends[d]
        columns[at] = 0
        for i in range(count):
            columns[at + 1 + i] = 1 + held[i]
        _paired(held, count, begins, seconds, at + 1 + count, 1 + most, columns)


@njit(cache=True, nogil=True, inline="always")
def _paired(held: Array, count: int, begins: Array, seconds: Array, at: int, shift: int, columns: Array) -> int:
    """How many pairs these words make; both lists are in order, so each is read once for each word."""
    found = 0
    for i in range(count):
        j, pair = i + 1, begins[held[i]]
        while j < count and pair < begins[held[i] + 1]:
            if held[j] < seconds[pair]:
                j += 1
            elif held[j] > seconds[pair]:
                pair += 1
            else:
                if len(columns):
                    columns[at + found] = shift + pair
                found, j, pair = found + 1, j + 1, pair + 1
    return found


_CHUNK = 1 << 19  # words whose pairs are added at a time


@dataclass(frozen=True, eq=False)
class CooccurrenceCounts:
    """How many documents hold each top word, and both words of each pair within a topic: all that NPMI needs."""

    top: Array

    @property
    def terms(self) -> Terms:
        """A row of zeros and ones. The question depends on the model's state: it is asked again when topics change."""
        words, pairs = _words_and_pairs(self.top)
        layout = (Block("documents", (1,)), Block("words", (len(words),)), Block("pairs", (len(pairs),)))
        return presence_terms(layout, data_only=False)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        words, pairs = _words_and_pairs(self.top)
        for some in chunks(with_zero(np.cumsum(np.diff(documents.counts.indptr))), documents.persons, _CHUNK):
            clipped_sum.add(rows_of_held(documents.counts[some], words, pairs), some)


def npmi_from_answer(top: Array, answer: Answer) -> Array:
    """Each topic's document NPMI over all parties' documents, from the summed counts."""
    total = total_of(answer)
    words, pairs = _words_and_pairs(top)
    first, second = (np.searchsorted(words, top[:, side]) for side in pairs_within(top))
    place = np.searchsorted(_code(pairs[:, 0], pairs[:, 1]), _code(words[first], words[second]))
    documents, together = float(total["documents"][0]), total["pairs"][place]
    one, other = (np.clip(total["words"][side], together, documents) for side in (first, second))  # noise may contradict itself
    found: Array = npmi(together, one, other, documents).mean(axis=1)
    return found


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How well the model predicts one half of each document's words from the other half (document completion)."""

    model: TopicModel
    state: State
    seed: int = 0

    @property
    def terms(self) -> Terms:
        """Three unbounded real numbers per document: a mechanism that needs a bound has to clip."""
        layout = (Block("log_likelihood", (1,)), Block("tokens", (1,)), Block("documents", (1,)))
        return Terms(layout, bits=64)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        """Adds one row per document: the log-likelihood of its unseen words, their number, and 1."""
        seen, unseen = documents.halves(self.seed)
        likelihood = np.asarray(self.model.log_likelihood(self.state, seen, unseen), dtype=np.float64)
        tokens = np.asarray(unseen.counts.sum(axis=1), dtype=np.float64).ravel()
        clipped_sum.add(np.column_stack([likelihood, tokens, np.ones(len(tokens))]), np.arange(len(documents)))


def perplexity_from_answer(answer: Answer) -> float:
    """Per-word held-out perplexity over all parties' documents, from the summed answer."""
    total = total_of(answer)
    return perplexity(total["log_likelihood"], total["tokens"])


def _words_and_pairs(top: Array) -> tuple[Array, Array]:
    """The distinct top words, and the distinct pairs within a topic (smaller id first), both in order."""
    first, second = (top[:, side].ravel() for side in pairs_within(top))
    codes = distinct(_code(first, second))
    return distinct(top), np.column_stack([codes >> 32, codes & 0xFFFFFFFF])


def _code(first: Array, second: Array) -> Array:
    """A pair of word ids as one integer, in either order."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return (low.astype(np.int64) << 32) | high.astype(np.int64)
