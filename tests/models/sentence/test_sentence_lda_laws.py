"""SentenceLDA passes the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.questions.model_quality import HeldOut
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws


def small(**settings: Any) -> SentenceLDA:
    return SentenceLDA(n_topics=3, **settings)


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order, in sentences of one to three words."""
    toys = some_documents(14, seed=5)
    ends = np.arange(3, len(toys.tokens), 3)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real", sentence_ends=ends)


class TestSentenceLDA(ModelLaws):
    tolerance = 0.0  # whole numbers: count for count

    @pytest.fixture(params=["gibbs", "mh"])
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(sampler=request.param)


class TestSentenceLDAOverACorpus(ModelLaws):
    tolerance = 0.0

    @pytest.fixture(params=["gibbs", "mh"])
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(threads=2, sampler=request.param)

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
@pytest.mark.parametrize("step", [0, 3])
class TestSentenceLDACounts(QueryLaws):
    @pytest.fixture
    def query(self, step: int, sampler: str) -> Query:
        model, parties = small(sampler=sampler, longest=4), split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=step), "party 0"))


@pytest.mark.parametrize("query", [small().query(small().start(VOCABULARY, np.random.default_rng(0)))])
class TestSentenceLDACountsOfACorpus(QueryLaws):
    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


class TestHeldOutUnderSentenceLDA(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0)))
