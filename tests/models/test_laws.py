"""Our models pass the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.fednmf import FedNMF
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.moments import Moments
from securetm.models.nmf import NMF
from securetm.models.questions.model_quality import HeldOut
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws

from ..quick_part import quick

K = 3
EXACT = (  # whole numbers, or rows on a grid: a federation's sums are one machine's to the last bit
    LDA(K, sweeps=3),
    LDA(K, sampler="mh"),
    SentenceLDA(K),
    SentenceLDA(K, sampler="mh", longest=4),
    Moments(K),
    Moments(0, alone=0.7, threads=2),
)
CLOSE = (
    VariationalLDA(K),
    VariationalLDA(K, forgetting=0.3, repeats=1, threads=2),
    NMF(K, weighting="log", threads=2),
    NMF(K, **NMF.budget_defaults),
)
STEPPING = (
    FedNMF(K, local_epochs=2),
    FedNMF(K, local_epochs=2, mutual_information=0.0, weighting="l2", server="yogi", batch=2),
)
ASKED = (  # settings at which a question could break its terms
    *EXACT,
    *CLOSE,
    *STEPPING,
    Moments(K, alone=0.01),
    Moments(K, alone=0.99),
    NMF(40, weighting="counts"),
    NMF(K, passes=1),
    VariationalLDA(40),
    VariationalLDA(K, alpha=1e-9, eta=1e-9),
    VariationalLDA(K, batch_size=5),
)


def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order, in sentences of one to three words."""
    toys = some_documents(14, seed=5)
    ends = np.arange(3, len(toys.tokens), 3)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real", sentence_ends=ends)


def named(part: Any) -> str:
    return type(part).__name__


class TestExactModels(ModelLaws):
    tolerance = 0.0

    @pytest.fixture(params=quick(EXACT, EXACT[0], EXACT[3], EXACT[5]), ids=named)
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return request.param  # type: ignore[no-any-return]


class TestCloseModels(ModelLaws):
    @pytest.fixture(params=quick(CLOSE, CLOSE[1], CLOSE[3]), ids=named)
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return request.param  # type: ignore[no-any-return]


class TestModelsThatStepAtParties(ModelLaws):
    @pytest.fixture(params=quick(STEPPING, STEPPING[1]), ids=named)
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return request.param  # type: ignore[no-any-return]

    def test_federated_is_concatenated(self, model: TopicModel, documents: Any) -> None:
        """It is not, as parties take steps of their own; the mean over parties is tried in `test_nmf.py`."""


class TestModelsOverACorpus(ModelLaws):
    @pytest.fixture(
        params=quick([LDA(K, threads=2), SentenceLDA(K), Moments(K), VariationalLDA(K), NMF(K)], SentenceLDA(K)), ids=named
    )
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return request.param  # type: ignore[no-any-return]

    @pytest.fixture
    def documents(self) -> Corpus:
        return corpus()


class TestFirstQuestions(QueryLaws):
    @pytest.fixture(params=quick(ASKED, *EXACT[:2], EXACT[4], CLOSE[1], CLOSE[3], STEPPING[1]), ids=named)
    def query(self, request: pytest.FixtureRequest) -> Query:
        return request.param.query(request.param.start(VOCABULARY, np.random.default_rng(0)))  # type: ignore[no-any-return]


class TestLaterQuestions(QueryLaws):
    @pytest.fixture(params=quick([LDA(K), *EXACT[2:4], *CLOSE], EXACT[2], CLOSE[0]), ids=named)
    def query(self, request: pytest.FixtureRequest) -> Query:
        model, parties = request.param, split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=3), "party 0"))  # type: ignore[no-any-return]


class TestQuestionsAboutHeldOutWords(QueryLaws):
    @pytest.fixture(
        params=quick([LDA(K), SentenceLDA(K), VariationalLDA(K), NMF(K), Moments(K)], SentenceLDA(K), NMF(K)), ids=named
    )
    def query(self, request: pytest.FixtureRequest) -> Query:
        return HeldOut(request.param, request.param.start(VOCABULARY, np.random.default_rng(0)))
