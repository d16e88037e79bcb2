"""Moments pass the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.federation.questions import PerPerson
from securetm.models.moments import Moments
from securetm.models.questions.model_quality import HeldOut
from securetm.models.trials import check_additive
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws
from securetm.testing.query_laws import QueryLaws


def small(**settings: Any) -> Moments:
    return Moments(**{"n_topics": 3, **settings})


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order."""
    toys = some_documents(14, seed=5)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real")


class TestMoments(ModelLaws):
    tolerance = 0.0  # sums of rows are exact

    @pytest.fixture(params=[{}, {"n_topics": 0}, {"alone": 0.7, "threads": 2}])
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(**request.param)


class TestMomentsOverACorpus(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return small()

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


@pytest.mark.parametrize("settings", [{}, {"alone": 0.01}, {"alone": 0.99}])
class TestPairsQuery(QueryLaws):
    @pytest.fixture
    def query(self, settings: dict[str, Any]) -> Query:
        model = small(**settings)
        return model.query(model.start(VOCABULARY, np.random.default_rng(0)))


class TestPairsQueryOfACorpus(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return small().query(small().start(VOCABULARY, np.random.default_rng(0)))

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


class TestHeldOutUnderMoments(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0)))


def test_no_document_moves_anothers_row() -> None:
    check_additive(small())


def test_rows_may_be_a_persons() -> None:
    query = PerPerson(small().query(small().start(VOCABULARY, np.random.default_rng(0))))
    assert query.terms.unit.value == "person"
