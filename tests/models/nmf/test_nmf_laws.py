"""NMF and FedNMF pass the laws of models and of queries, over toys and over a real corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.fednmf import FedNMF
from securetm.models.nmf import NMF
from securetm.models.questions.model_quality import HeldOut
from securetm.models.trials import check_additive
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws

SETTINGS = ({}, {"weighting": "counts"}, {"weighting": "log", "threads": 2}, dict(NMF.budget_defaults))


def small(**settings: Any) -> NMF:
    return NMF(n_topics=3, **settings)


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order."""
    toys = some_documents(14, seed=5)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real")


class TestNMF(ModelLaws):
    @pytest.fixture(params=SETTINGS)
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return small(**request.param)


class TestNMFOverACorpus(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return small()

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize("settings", [*SETTINGS, {"n_topics": 40}, {"passes": 1}])
class TestProductsQuery(QueryLaws):
    @pytest.fixture
    def query(self, step: int, settings: dict[str, Any]) -> Query:
        model, parties = NMF(**{"n_topics": 3, **settings}), split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=step), "party 0"))


class TestHeldOutUnderNMF(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0)))


def test_no_document_moves_anothers_row() -> None:
    for settings in SETTINGS:
        check_additive(small(**settings))


STEPS = ({}, {"mutual_information": 0.0, "weighting": "l2"}, {"server": "yogi", "batch": 2})


def stepping(**settings: Any) -> FedNMF:
    return FedNMF(**{"n_topics": 3, "local_epochs": 2, **settings})


class TestFedNMF(ModelLaws):
    @pytest.fixture(params=STEPS)
    def model(self, request: pytest.FixtureRequest) -> TopicModel:
        return stepping(**request.param)

    def test_federated_is_concatenated(self, model: TopicModel, documents: Any) -> None:
        """It is not, as parties take steps of their own; the mean over parties is tried in `test_fednmf.py`."""


@pytest.mark.parametrize("settings", STEPS)
class TestLocalStepsQuery(QueryLaws):
    @pytest.fixture
    def query(self, settings: dict[str, Any]) -> Query:
        return stepping(**settings).query(stepping(**settings).start(VOCABULARY, np.random.default_rng(0)))
