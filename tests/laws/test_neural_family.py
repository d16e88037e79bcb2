"""The neural models pass the laws of models and queries, bit for bit where rows must not meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from securetm.contracts import Query, TopicModel
from securetm.models.neural.contextual import CombinedTM, ZeroShotTM
from securetm.models.neural.neural_lda import NeuralLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.trials import check_additive, check_rows
from securetm.testing.few_documents import EMBEDDING_SIZE, some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws, split, trained
from securetm.testing.query_laws import QueryLaws

from ..quick_part import quick

FAMILY = ("prodlda", "neural-lda", "combined-tm", "zeroshot-tm")
BESIDE = FAMILY[1:]  # of ProdLDA, test_prodlda_rows.py and test_row_trial.py say more
DTYPES = quick(["float32", "float64"], "float32")
FEW = quick(FAMILY, "prodlda", "combined-tm")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def small(name: str, **settings: Any) -> TopicModel:
    common: dict[str, Any] = {"n_topics": 3, "hidden": 8, "dtype": "float64", "device": "cpu", **settings}
    if name == "prodlda":
        return ProdLDA(**common)
    if name == "neural-lda":
        return NeuralLDA(**common)
    return {"combined-tm": CombinedTM, "zeroshot-tm": ZeroShotTM}[name](**{"embedding_size": EMBEDDING_SIZE, **common})


@pytest.mark.parametrize("name", FEW)
class TestNeuralFamily(ModelLaws):
    @pytest.fixture
    def model(self, name: str) -> TopicModel:
        return small(name)


@pytest.mark.parametrize("theta_dropout", quick([0.0, 0.3], 0.3))
@pytest.mark.parametrize("name", FEW)
class TestGradientOfTheFamily(QueryLaws):
    @pytest.fixture
    def query(self, name: str, theta_dropout: float) -> Query:
        model, parties = small(name, dropout=0.4, theta_dropout=theta_dropout), split(some_documents(14, seed=5))
        return model.query(model.for_party(trained(model, parties, rounds=3), "party 0"))


@pytest.mark.parametrize("name", FEW)
class TestLocalEpochsOfTheFamily(QueryLaws):
    @pytest.fixture
    def query(self, name: str) -> Query:
        model = small(name, local_epochs=2)
        return model.query(model.start(VOCABULARY, np.random.default_rng(0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BESIDE)
def test_no_document_and_no_person_changes_a_bit_of_another_ones_row_and_answers_are_sums(name: str, dtype: str) -> None:
    check_rows(small(name, dtype=dtype))
    check_additive(small(name, dtype=dtype))


@pytest.mark.parametrize("server", quick(["average", "adam", "yogi", "adagrad"], "average", "yogi"))
@pytest.mark.parametrize("name", FEW)
def test_every_server_optimiser_steps_along_the_mean_difference(name: str, server: str) -> None:
    model, parties = small(name, local_epochs=1, batch=4, server=server), split(some_documents(14, seed=5))
    state = trained(model, parties, rounds=3)
    assert all(np.isfinite(array).all() for array in state.values())
    assert set(model.for_party(state, "party 0")) == {"weights", "step", "seed"}  # no moment travels
    assert ("server_second" in state) == (server != "average")
    average = trained(small(name, local_epochs=1, batch=4), parties, rounds=3)
    assert np.any(state["weights"] != average["weights"]) == (server != "average")
