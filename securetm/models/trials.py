"""Trials of a model on made-up documents: whether its answer is a sum over documents, and whether a row depends on others.

Both are what a clip per document assumes. All documents are made up, so an outcome reveals nothing about anybody's. A model
that passes is not proven; a model that is refused has failed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from securetm.answers.clipped_sum import ClippedRowSum, clipped, joined
from securetm.contracts import INF, Array, Losses, Memory, Needs, Query, Rows, State, TopicModel, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.data_classes import dataclass, field
from securetm.errors import Refused, Unsound
from securetm.extras import sparse


class CouplesDocuments(Unsound):
    """in {where}, one document's part of the answer depends on the documents beside it: {kind}"""

    where: str
    kind: str
    hint = "normalise each document by itself (layer normalisation instead of batch normalisation): no clip bounds the others"


class RowsDepend(Refused):
    """{model} cannot bound the part of one document in a sum here: {how}"""

    model: str
    how: str
    hint = 'train on a CPU (device = "cpu"), or on another processor; and please report the processor: nothing was spent'


_WORDS = 30


def trial_documents(copies: int = 1, embedding_size: int = 0) -> Corpus:
    """Documents of 1 to 400 words, so many of each length; each is one sentence, and has a person of its own."""
    rng = np.random.default_rng(0)
    lengths = (8, 1, 60, 12, 9, 400, 20, 5, 33, 2, 15, 10) * copies
    each = [rng.permutation(rng.choice(_WORDS, n, p=rng.dirichlet(np.full(_WORDS, 0.3)))) for n in lengths]
    keys = rng.integers(0, 2**64, len(each), dtype=np.uint64)
    counts, ends = np.array([np.bincount(one, minlength=_WORDS) for one in each], dtype=np.int32), np.cumsum(lengths)
    embeddings = counts @ np.random.default_rng(3).normal(0, 1, (_WORDS, embedding_size or 16))
    words, tokens = tuple(f"word {v}" for v in range(_WORDS)), np.concatenate(each).astype(np.int32)
    return Corpus(
        HeldDocuments(
            sparse.csr_array(counts), words, keys, tokens, ends, ends, embeddings=embeddings, persons=np.arange(len(each))
        )
    )


_ROUNDING = 200.0  # the allowed difference of two sums of the same numbers, in units of the last place of the largest one
_PARTS = ((0, 2), (2, 6), (6, 12))  # two at least, as some models refuse a single document


def check_additive(model: TopicModel) -> None:
    """Raises CouplesDocuments unless a fresh model's answer about some documents is the sum of its answers about parts of them.

    Questions to each party by itself, and answers that are one row of a whole party, are no sums over documents: they pass.
    """
    documents = trial_documents(embedding_size=model.embedding_size)
    query = model.query(model.start(documents.vocabulary, np.random.default_rng(0)))
    if query.terms.needs is not Needs.SUM or query.terms.unit is Unit.PARTY:
        return
    for radius in (INF, 1.0):
        whole = _answer(query, documents, radius)
        apart = np.array([_answer(query, documents.select(np.arange(*part)), radius) for part in _PARTS])
        real = np.float32 if query.terms.bits == 32 else np.float64
        unit = float(np.finfo(real).eps) if np.issubdtype(whole.dtype, np.floating) else 0.0
        # Rounding errors grow with the largest terms: a much smaller coordinate may be rounding error alone.
        terms = np.abs(apart).sum(axis=0)
        allowed = _ROUNDING * unit * np.maximum(terms, 0.1 * terms.max(initial=0.0))
        if not (np.abs(whole - apart.sum(axis=0)) <= allowed).all():
            raise CouplesDocuments(
                type(model).__name__, "the answer about all documents is not the sum of the answers about parts of them"
            )


def _answer(query: Query, documents: Any, radius: float) -> Array:
    clipped_sum = ClippedRowSum(query.terms, radius=radius, persons=documents.persons)
    query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
    return np.asarray(clipped_sum.vector())


_ROUNDS = 2  # in the second one, a model may use what it remembers of its documents
_SIZES = (1, 2, 4, 7, 12)  # libraries sum in another order for some numbers of rows, most often for few
_RADIUS = 1.0


def check_rows(model: TopicModel, protected: Unit = Unit.DOCUMENT) -> None:
    """Raises RowsDepend if a row of the model's answer changes when other documents, or other persons, are added.

    Each model is tried once in a process for each number of threads. Answers that are one row of a whole party have no rows to
    compare. Where single words are protected nothing is clipped: the noise is in the documents.
    """
    if protected is Unit.WORD:
        return
    if not model.in_fixed_order:
        raise RowsDepend(type(model).__name__, "a GPU adds in no fixed order")
    threads = int(sys.modules["torch"].get_num_threads()) if "torch" in sys.modules else 1
    if (failed := _failed(_Trial(type(model), repr(model), threads, model))) is not None:
        raise RowsDepend(type(model).__name__, failed)


@dataclass(frozen=True)
class _Trial:
    """One trial: a model, which is equal to another one of the same settings, and the number of threads."""

    kind: type
    settings: str
    threads: int
    model: TopicModel = field(compare=False)


@functools.lru_cache(maxsize=16)
def _failed(trial: _Trial) -> str | None:
    documents = trial_documents(copies=2, embedding_size=trial.model.embedding_size)
    pairs = np.arange(len(documents)) // 2
    start = trial.model.start(documents.vocabulary, np.random.default_rng(0))
    for state in _prepared(start):
        query = trial.model.query(state)
        if query.terms.needs is not Needs.SUM or query.terms.unit is Unit.PARTY:
            return None
        for unit, owners in (("document", np.arange(len(documents))), ("person", pairs)):
            order = np.random.default_rng(2).permutation(owners[-1] + 1)
            whole = _rows(query, documents, owners, order)
            some = (_rows(query, documents, owners, order[-size:]) for size in _SIZES)
            if any(row != whole[name] for rows in some for name, row in rows.items()):
                return f"on this processor, with {trial.threads} threads, a {unit}'s row changes with the others beside it"
    return None


def _prepared(start: State) -> Iterator[State]:
    """A fresh state, and weights as a coordinator may choose them: large and of both signs, so that sums cancel."""
    yield start
    if "weights" in start:
        rng, weights = np.random.default_rng(1), start["weights"]
        for size in (1.0, 1e3):
            yield {**start, "weights": (size * rng.standard_normal(weights.shape)).astype(weights.dtype)}


def _rows(query: Query, documents: Corpus, owners: Array, names: Array) -> dict[int, list[bytes]]:
    """The rows of each of these owners in every round."""
    places = np.concatenate([np.flatnonzero(owners == name) for name in names])
    kept = _RowsByOwner(owners[places])
    memory: Memory = {}
    for _ in range(_ROUNDS):
        query.answer(documents.select(places), kept, memory, np.random.default_rng(0))
        if not memory:
            break
    return kept.rows


class _RowsByOwner:
    """A clipped sum (contracts.ClippedSum) that keeps each owner's clipped row instead of their sum."""

    def __init__(self, owners: Array) -> None:
        self._owners = owners
        self.rows: dict[int, list[bytes]] = {}

    def add(self, rows: Rows, owners: Array) -> None:
        names = self._owners[owners]
        bounded = clipped(joined(rows, names), _RADIUS)
        for name, row in zip(np.unique(names), bounded, strict=True):
            self._keep(name, np.asarray(row.todense() if sparse.issparse(row) else row))

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:
        names = self._owners[owners]
        for name, length in zip(np.unique(names), losses.norms(names), strict=True):
            self._keep(name, np.array(length))
            if np.isfinite(length):
                self._keep(name, losses.gradient((names == name).astype(np.float64)))

    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array:
        return np.zeros(len(numbers), dtype=np.int64)

    def _keep(self, name: Any, row: Array) -> None:
        self.rows.setdefault(int(name), []).append(row.tobytes())
