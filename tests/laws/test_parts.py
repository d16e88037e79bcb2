"""Real parts pass the laws of their kinds over real documents. Each subclass is all that a new part needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.questions.model_quality import CooccurrenceCounts, HeldOut
from securetm.models.questions.words import DocumentFrequencies
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws
from securetm.testing.query_laws import QueryLaws


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**settings: Any) -> ProdLDA:
    return ProdLDA(n_topics=3, hidden=8, dtype="float64", device="cpu", **settings)


@pytest.fixture
def corpus() -> Corpus:
    """Real documents with the toys' words, in reading order."""
    toys = some_documents(14, seed=5)
    return Corpus.from_tokens(toys.tokens, toys.token_ends, toys.vocabulary, name="real")


class TestProdLDAOverACorpus(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return small(dropout=0.4)

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus


QUESTIONS: Mapping[str, Callable[[], Query]] = {
    "frequencies": lambda: DocumentFrequencies(len(VOCABULARY)),
    "coherence": lambda: CooccurrenceCounts(np.array([[0, 3, 2], [3, 2, 5]])),
    "held out": lambda: HeldOut(small(), small().start(VOCABULARY, np.random.default_rng(0))),
    "training": lambda: small().query(small().start(VOCABULARY, np.random.default_rng(0))),
}


@pytest.mark.parametrize("question", QUESTIONS)
class TestQuestionsToACorpus(QueryLaws):
    @pytest.fixture
    def query(self, question: str) -> Query:
        return QUESTIONS[question]()

    @pytest.fixture
    def documents(self, corpus: Corpus) -> Corpus:
        return corpus
