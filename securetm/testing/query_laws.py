"""The laws of every query: it keeps its terms and bounds, adds up, is repeatable, and each row depends on one document.

Subclass `QueryLaws` and give the fixture `query`. No mechanism is tried here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import INF, Array, Domain, Losses, Memory, Needs, Query, Rows, Unit
from securetm.data_classes import dataclass, field
from securetm.testing.few_documents import WAYS, answered, in_small_blocks, some_documents


@dataclass
class SumOfRows:
    """Keeps every row that is added; a real clipped sum keeps only their sum."""

    rows: list[Array] = field(default_factory=list)
    owners: list[Array] = field(default_factory=list)
    losses: list[tuple[Losses, Array]] = field(default_factory=list)

    def add(self, rows: Rows, owners: Array) -> None:
        self.rows.append(rows.toarray() if sparse.issparse(rows) else np.asarray(rows))
        self.owners.append(owners)

    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array:
        sums: Array = np.asarray(rows.sum(axis=0)).ravel()
        return sums

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:
        alone = np.eye(len(owners))
        self.rows.append(np.column_stack([np.stack([losses.gradient(one) for one in alone]), beside]))
        self.owners.append(owners)
        self.losses.append((losses, owners))


def summed(query: Query, documents: Any, memory: Memory | None = None, radius: float = INF) -> Array:
    """The flat vector of one party's answer."""
    clipped_sum = ClippedRowSum(query.terms, radius)
    query.answer(documents, clipped_sum, {} if memory is None else memory, np.random.default_rng(0))
    return clipped_sum.vector()


def rows_of(query: Query, documents: Any) -> Array:
    """All rows of one party's answer."""
    clipped_sum = SumOfRows()
    query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
    return np.vstack(clipped_sum.rows)


def by_document(query: Query) -> bool:
    """Whether the answer is a sum over documents or persons, so that it does not matter which party holds which."""
    return query.terms.needs is Needs.SUM and query.terms.unit is not Unit.PARTY


class QueryLaws:
    """Laws of one query. A law passes at once where it is not about this kind of query."""

    @pytest.fixture
    def query(self) -> Query:
        raise NotImplementedError("a subclass gives the query")

    @pytest.fixture
    def documents(self) -> Any:
        return some_documents(12, seed=3)

    def test_terms_are_kept(self, query: Query, documents: Any) -> None:
        vector, terms = summed(query, documents), query.terms
        kind = np.integer if terms.domain is Domain.INTEGER else np.floating
        assert np.issubdtype(vector.dtype, kind)
        assert np.all(np.isfinite(vector))
        if terms.ragged:
            assert vector.shape[1:] == terms.layout[0].shape[1:]
            assert vector.shape[0] <= terms.layout[0].shape[0]
        else:
            assert vector.shape == (terms.size,)

    def test_terms_are_known_beforehand(self, query: Query, documents: Any) -> None:
        before = query.terms
        summed(query, documents)
        assert query.terms == before

    def test_only_each_is_ragged(self, query: Query) -> None:
        assert not query.terms.ragged or query.terms.needs is Needs.EACH
        assert not query.terms.ragged or len(query.terms.layout) == 1

    def test_repeatable(self, query: Query, documents: Any) -> None:
        np.testing.assert_array_equal(summed(query, documents), summed(query, documents))

    def test_documents_are_left_alone(self, query: Query, documents: Any) -> None:
        before = documents.counts.toarray()
        summed(query, documents)
        np.testing.assert_array_equal(documents.counts.toarray(), before)

    def test_additivity(self, query: Query, documents: Any) -> None:
        if not by_document(query):
            return self.one_row_of_the_party(query, documents)
        for radius in (INF, 0.5, 2.0):
            self.split_and_compare(query, documents, radius)
        return None

    def split_and_compare(self, query: Query, documents: Any, radius: float) -> None:
        parts = np.array_split(np.arange(len(documents)), [1, 5])
        memories: list[Memory] = [{} for _ in parts]
        whole: Memory = {}
        for _ in range(3):  # again with what the party remembers
            together = summed(query, documents, whole, radius)
            apart = [summed(query, documents.select(p), m, radius) for p, m in zip(parts, memories, strict=True)]
            np.testing.assert_allclose(np.sum(apart, axis=0), together, rtol=1e-9, atol=1e-9)

    def one_row_of_the_party(self, query: Query, documents: Any) -> None:
        clipped_sum = SumOfRows()
        query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
        assert len(clipped_sum.rows) == 1
        assert len(np.unique(clipped_sum.owners[0])) == 1

    def test_shards_and_workers_change_no_byte(self, query: Query, documents: Any) -> None:
        answers, memories = [], []
        for way in WAYS:
            memory: Memory = {}
            rounds = [answered(query, in_small_blocks(documents), memory, way) for _ in range(3)]
            answers.append([answer.tobytes() for answer in rounds])
            memories.append({name: array.tobytes() for name, array in memory.items()})
        assert answers[1:] == answers[:-1]
        assert memories[1:] == memories[:-1]
        if by_document(query):  # what the party remembers does not matter in the first round
            cut, whole = (answered(query, some, {}, WAYS[0]) for some in (in_small_blocks(documents), documents))
            np.testing.assert_allclose(cut, whole, rtol=1e-5, atol=1e-6)

    def test_isolation(self, query: Query, documents: Any) -> None:
        if not by_document(query):
            return
        together = rows_of(query, documents)
        assert len(together) == len(documents)
        for i in range(len(documents)):
            alone = rows_of(query, documents.select(np.array([i])))
            np.testing.assert_allclose(alone[0], together[i], rtol=1e-9, atol=1e-12)

    def test_order_does_not_matter(self, query: Query, documents: Any) -> None:
        if not by_document(query):
            return
        backwards = documents.select(np.arange(len(documents))[::-1])
        np.testing.assert_allclose(summed(query, backwards), summed(query, documents), rtol=1e-9, atol=1e-9)

    def test_own_bounds(self, query: Query, documents: Any) -> None:
        if query.terms.ragged:
            return
        rows, terms = rows_of(query, documents).astype(float), query.terms
        for order, bound in ((1, terms.l1), (2, terms.l2), (np.inf, terms.linf)):
            assert np.all(np.linalg.norm(rows, ord=order, axis=1) <= bound * (1 + 1e-9))

    def test_norms_of_losses(self, query: Query, documents: Any) -> None:
        clipped_sum = SumOfRows()
        query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
        for losses, owners in clipped_sum.losses:
            for grouped in (owners, owners // 3):  # several documents of one person
                self.norms_are_those_of_the_gradients(losses, grouped)

    def norms_are_those_of_the_gradients(self, losses: Losses, owners: Array) -> None:
        lengths = [np.linalg.norm(losses.gradient((owners == name).astype(float))) for name in np.unique(owners)]
        np.testing.assert_allclose(losses.norms(owners), lengths, rtol=1e-6)
        assert losses.values.shape == owners.shape
