"""No document moves a bounded sum by more than its bound, whatever it holds: for every model whose rows are of documents."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Array, Domain, Needs, Unit
from securetm.corpus.corpus import Corpus
from securetm.mechanisms.clipping import at_most
from securetm.plans.profiles import make_model
from tests.models.small_models import EMBEDDED, OURS, small_settings

from ..quick_part import quick

WORDS = ("boat", "judge", "lake", "river", "storm", "court", "law", "cell", "nerve", "blood")
ORDINARY = ["river lake boat. lake", "judge court law", "cell nerve. blood", "storm river boat"]
ADVERSARIAL = {
    "no word": "zebra",
    "one word a thousand times": "lake " * 1000,
    "every word once": " ".join(WORDS),
    "every word a hundred times": " ".join(WORDS * 100),
    "a million words": "river " * 600_000 + "lake " * 400_000,
}
RADIUS, MOST = 1.0, 30


@cache
def corpus(*texts: str) -> Corpus:
    found = Corpus.from_strings([*texts, "lake"]).project(WORDS).select(np.arange(len(texts)))
    return found.replace(embeddings=np.random.default_rng(1).normal(size=(len(texts), EMBEDDED)).astype(np.float32))


def bounded_sum(query: Any, documents: Corpus) -> Array:
    """The sum of rows under a clip; rows of whole numbers are bounded by their counts instead."""
    whole = query.terms.domain is Domain.INTEGER
    added = (
        ClippedRowSum(query.terms, on_rows=lambda rows: at_most(rows, MOST, 1)) if whole else ClippedRowSum(query.terms, RADIUS)
    )
    query.answer(documents, added, {}, np.random.default_rng(0))
    return np.asarray(added.vector(), dtype=np.float64)


@pytest.mark.parametrize("name", quick(OURS, "lda", "lda-vi", "nmf", "semantic"))
def test_no_document_moves_a_sum_by_more_than_its_bound(name: str) -> None:
    model = make_model(name, small_settings(name, 3))
    query = model.query(model.for_party(model.start(WORDS, np.random.default_rng(0)), "north"))
    if query.terms.unit is not Unit.DOCUMENT or query.terms.needs is Needs.EACH:
        return  # its rows are of parties: no bound speaks of a document
    whole = query.terms.domain is Domain.INTEGER
    bound = np.sqrt(MOST) if whole else RADIUS
    for text in ADVERSARIAL.values():
        documents = corpus(*ORDINARY, text)
        with_it, without = (bounded_sum(query, some) for some in (documents, documents.select(np.arange(len(ORDINARY)))))
        assert np.isfinite(with_it).all()
        assert np.linalg.norm(with_it - without) <= bound * (1 + 1e-5)  # some sums are in 32 bits
