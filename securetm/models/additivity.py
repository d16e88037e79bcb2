"""Tries on made-up documents whether a model's answer is a sum over documents, as a clip per document assumes.

A model that passes is not proven additive; a model that is refused has failed. It needs no torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import INF, Array, Needs, Query, TopicModel, Unit
from securetm.models.model_errors import CouplesDocuments
from securetm.models.trial_documents import trial_documents

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
        _compare(type(model).__name__, whole, apart.sum(axis=0), np.abs(apart).sum(axis=0), unit)


def _compare(model: str, whole: Array, apart: Array, terms: Array, unit: float) -> None:
    # Rounding errors grow with the largest terms: a much smaller coordinate may be rounding error alone.
    if not (np.abs(whole - apart) <= _ROUNDING * unit * np.maximum(terms, 0.1 * terms.max(initial=0.0))).all():
        raise CouplesDocuments(model, "the answer about all documents is not the sum of the answers about parts of them")


def _answer(query: Query, documents: Any, radius: float) -> Array:
    clipped_sum = ClippedRowSum(query.terms, radius=radius, persons=documents.persons)
    query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
    return np.asarray(clipped_sum.vector())
