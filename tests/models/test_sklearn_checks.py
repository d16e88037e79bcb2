"""scikit-learn's own checks on every model; those that a topic model does not pass are listed, each with its reason."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

import securetm
from securetm.models import MODELS as REGISTRY

OWN_SENTENCE = "it is refused with a ValueError, whose sentence is securetm's own"
NOT_PASSED = {  # docs/tutorials/scikit-learn.md lists them too
    "check_do_not_raise_errors_in_init_or_set_params": "a setting that cannot be is refused when it is given, not by fit",
    "check_complex_data": OWN_SENTENCE,
    "check_estimators_empty_data_messages": "no documents give even topics, as from a party that has none; they are no error",
    "check_fit2d_predict1d": OWN_SENTENCE,
    "check_n_features_in_after_fitting": OWN_SENTENCE,
    "check_positive_only_tag_during_fit": OWN_SENTENCE,
}


def whole(documents: Any) -> Any:
    """scikit-learn's tables of fractions as whole counts; what is no table of finite numbers stays as it is."""
    if sparse.issparse(documents):
        table = documents.tocsr().astype(np.float64)
        return table.ceil() if np.isfinite(table.data).all() else documents
    try:
        table = np.asarray(documents)
        table = table.astype(np.float64, casting="unsafe" if table.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
        return documents
    return np.ceil(table) if np.isfinite(table).all() else documents


class WholeCounts:
    """A model that counts, given whole counts by every check: fractions it refuses (CountsNotWhole)."""

    def fit(self, documents: Any, y: Any = None, **options: Any) -> Any:
        return super().fit(whole(documents), y, **options)

    def partial_fit(self, documents: Any, y: Any = None, **options: Any) -> Any:
        return super().partial_fit(whole(documents), y, **options)

    def transform(self, documents: Any) -> Any:
        return super().transform(whole(documents))

    def score(self, documents: Any, y: Any = None) -> float:
        return super().score(whole(documents), y)


@dataclass(frozen=True)
class WholeLDA(WholeCounts, securetm.LDA):
    pass


@dataclass(frozen=True)
class WholeVariationalLDA(WholeCounts, securetm.VariationalLDA):
    pass


@dataclass(frozen=True)
class WholeNMF(WholeCounts, securetm.NMF):
    pass


@dataclass(frozen=True)
class WholeFedNMF(WholeCounts, REGISTRY.load("fednmf")):
    pass


MODELS = [
    WholeLDA(n_topics=3),
    pytest.param(WholeVariationalLDA(n_topics=3), marks=pytest.mark.slow),  # the same code asks it
    pytest.param(WholeNMF(n_topics=3), marks=pytest.mark.slow),
    pytest.param(securetm.ProdLDA(n_topics=3, hidden=8, batch=32), marks=pytest.mark.slow),
    pytest.param(securetm.NeuralLDA(n_topics=3, hidden=8, batch=32), marks=pytest.mark.slow),  # a network as ProdLDA
    pytest.param(WholeFedNMF(n_topics=3), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scikit_learn_checks_the_model(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no model derives from BaseEstimator, and what checks say of their own data
        results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {one["check_name"]: repr(one["exception"]) for one in results if one["status"] == "failed"}
    assert {name: problem for name, problem in failed.items() if name not in NOT_PASSED} == {}, failed
    assert set(NOT_PASSED) <= set(failed)  # what passes is not listed
    assert len(results) > 40
