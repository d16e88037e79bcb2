"""Variational LDA passes the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.federation.questions import PerPerson
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.questions.model_quality import HeldOut
from securetm.models.trials import check_additive
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws


def small(**settings: Any) -> VariationalLDA:
    return VariationalLDA(n_topics=3, **settings)


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order."""
    toys = some_documents(14, seed=5)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real")


class TestVariationalLDA(ModelLaws):
    @pytest.fixture(params=[{}, {"forgetting": 0.3, "repeats": 1}])
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(**request.param)


class TestVariationalLDAOverACorpus(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return small(threads=2)

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


@pytest.mark.parametrize("step", [0, 3])
class TestExpectedCounts(QueryLaws):
    @pytest.fixture
    def query(self, step: int) -> Query:
        model, parties = small(), split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=step), "party 0"))


@pytest.mark.parametrize("settings", [{"repeats": 1}, {"n_topics": 40}, {"alpha": 1e-9, "eta": 1e-9}, {"batch_size": 5}])
class TestExpectedCountsUnderOtherSettings(QueryLaws):
    @pytest.fixture
    def query(self, settings: dict[str, Any]) -> Query:
        model = VariationalLDA(**{"n_topics": 3, **settings})
        return model.query(trained(model, split(some_documents(14, seed=5)), rounds=2))


class TestExpectedCountsOfACorpus(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return small().query(small().start(VOCABULARY, np.random.default_rng(0)))

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


class TestHeldOutUnderVariationalLDA(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0)))


def test_no_document_moves_anothers_row() -> None:
    check_additive(small())


def test_rows_may_be_a_persons() -> None:
    query = PerPerson(small().query(small().start(VOCABULARY, np.random.default_rng(0))))
    assert query.terms.unit.value == "person"
