"""LDA passes the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.lda.lda import LDA
from securetm.models.questions.model_quality import HeldOut
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws


def small(**settings: Any) -> LDA:
    return LDA(n_topics=3, **settings)


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order."""
    toys = some_documents(14, seed=5)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real")


class TestLDA(ModelLaws):
    tolerance = 0.0  # whole numbers: count for count

    @pytest.fixture(params=[1, 3])
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(sweeps=request.param)


class TestLDAOverACorpus(ModelLaws):
    tolerance = 0.0

    @pytest.fixture
    def model(self) -> TopicModel:
        return small(threads=2)

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


@pytest.mark.parametrize("step", [0, 3])
class TestLDACounts(QueryLaws):
    @pytest.fixture
    def query(self, step: int) -> Query:
        model, parties = small(), split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=step), "party 0"))


@pytest.mark.parametrize("query", [small().query(small().start(VOCABULARY, np.random.default_rng(0)))])
class TestLDACountsOfACorpus(QueryLaws):
    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


class TestHeldOutUnderLDA(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0)))
