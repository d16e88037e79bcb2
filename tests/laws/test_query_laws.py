"""Questions beside the models' pass the laws of queries, and each law catches the fault it is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Array, Block, ClippedSum, Memory, Query, Terms
from securetm.errors import BrokenPromise, SplitOwner
from securetm.models.questions.model_quality import CooccurrenceCounts, HeldOut
from securetm.models.questions.words import DocumentFrequencies, WordList
from securetm.testing.few_documents import WORDS, some_documents
from securetm.testing.query_laws import QueryLaws, summed
from tests.laws import toys
from tests.laws.toys import TOPICS

RNG = np.random.default_rng(0)
TOPIC_WORDS = RNG.dirichlet(np.ones(WORDS), TOPICS)


class TestRows(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return toys.Memberships(TOPIC_WORDS)


class TestDocumentFrequencies(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return DocumentFrequencies(WORDS)


class TestWordList(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return WordList(40)


class TestCooccurrenceCounts(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return CooccurrenceCounts(np.array([[0, 3, 2], [3, 2, 5]]))


class TestHeldOut(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(toys.Mixture(), {"topics": TOPIC_WORDS}, seed=4)


# ---- mutants: a law that cannot fail is no law -------------------------------------------------------------------------


PROMISED = Terms((Block("words", (WORDS,)),), bits=64)


@dataclass(frozen=True)
class Mutant:
    """Words of each document; a subclass adds the fault."""

    terms: Terms = PROMISED

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        return counts

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        rows = self.rows(documents.counts.toarray().astype(float), documents, rng)
        clipped_sum.add(rows, np.arange(len(rows)))


class BatchNormalised(Mutant):
    """What batch normalisation does: a document's row depends on the documents beside it."""

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        normalised: Array = (counts - counts.mean(axis=0)) / (counts.std(axis=0) + 1e-3)
        return normalised


class Averaged(Mutant):
    """A mean instead of a sum."""

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        return counts / len(counts)


class NoiseByPlace(Mutant):
    """Dropout drawn in the order of the documents, not by their keys."""

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        return counts * (rng.random(counts.shape) < 0.5)


class Leftover(Mutant):
    """What it saw before stays in it."""

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        object.__setattr__(self, "terms", replace(PROMISED, l1=float(counts.sum())))
        return counts


class CountsItsCalls(Mutant):
    """Remembers in the process what belongs into the party's memory, so the order of blocks matters."""

    calls: ClassVar[list[int]] = []

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        self.calls.append(1)
        return counts * len(self.calls)


class Scribbling(Mutant):
    """Changes the documents it was lent."""

    def rows(self, counts: Array, documents: Any, rng: np.random.Generator) -> Array:
        documents.table[0, 0] += 1
        return counts


@dataclass(frozen=True, eq=False)
class WrongNorms(toys.SquaredErrors):
    """Adds up lengths where it should add up gradients."""

    def norms(self, owners: Array) -> Array:
        lengths = super().norms(np.arange(len(owners)))
        return np.array([lengths[owners == name].sum() for name in np.unique(owners)])


class WrongLosses(Mutant):
    """Losses that mislead the clip."""

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        words = documents.counts.astype(float)
        losses = WrongNorms(words, np.where(np.arange(len(documents)) % 2, 1.0, -1.0))
        clipped_sum.add_losses(losses, np.arange(len(documents)), np.ones((len(documents), 0)))


class Chunked(Mutant):
    """Pours in two goes, and counts owners from zero in each."""

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        for rows in np.array_split(documents.counts.toarray().astype(float), 2):
            clipped_sum.add(rows, np.arange(len(rows)))


def test_an_owner_poured_twice_is_refused() -> None:
    with pytest.raises(SplitOwner):
        summed(Chunked(), some_documents(12, seed=3))


def test_rows_of_another_size_or_for_others_are_refused() -> None:
    """A row of one number would else be added to every coordinate."""
    terms = Terms((Block("all", (3,)),))
    for rows, owners in ((np.ones((2, 1)), 2), (np.ones((2, 4)), 2), (np.ones((2, 3)), 1)):
        with pytest.raises(BrokenPromise):
            ClippedRowSum(terms).add(rows, np.arange(owners))


LAWS = QueryLaws()


@pytest.mark.parametrize(
    ("law", "mutant"),
    [
        (LAWS.test_isolation, BatchNormalised()),
        (LAWS.test_additivity, BatchNormalised()),
        (LAWS.test_additivity, Averaged()),
        (LAWS.test_isolation, NoiseByPlace()),
        (LAWS.test_order_does_not_matter, NoiseByPlace()),
        (LAWS.test_terms_are_known_beforehand, Leftover()),
        (LAWS.test_documents_are_left_alone, Scribbling()),
        (LAWS.test_shards_and_workers_change_no_byte, CountsItsCalls()),
        (LAWS.test_shards_and_workers_change_no_byte, Averaged()),
        (LAWS.test_own_bounds, Mutant(replace(PROMISED, l2=1.0))),
        (LAWS.test_norms_of_losses, WrongLosses()),
    ],
)
def test_the_law_catches_the_mutant(law: Any, mutant: Query) -> None:
    with pytest.raises(AssertionError):
        law(mutant, some_documents(12, seed=3))


def test_the_mutants_are_sound_where_they_have_no_fault() -> None:
    LAWS.test_additivity(Mutant(), some_documents(12, seed=3))
    LAWS.test_isolation(Mutant(), some_documents(12, seed=3))
    LAWS.test_shards_and_workers_change_no_byte(Mutant(), some_documents(12, seed=3))
