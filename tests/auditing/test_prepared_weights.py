"""Weights prepared so that a last bit decides whole rows: sums of neighbours lie no farther apart than the terms say.

The attack breaks rows without a bound, and a model that differs from ours by one thing: it adds in another order for an odd
number of rows, as libraries do on some processors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.auditing.attack import Estimate, GroundTruth, Score
from securetm.auditing.attacks.prepared_weights import FARTHEST, attack, judge, pose
from securetm.auditing.views import AdversaryView, PublicFacts
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.models.fixed_order import add_product
from securetm.models.neural.cpu_kernels import FusedKernels
from securetm.models.neural.prodlda import ProdLDA
from securetm.plans.agreement import agree
from securetm.plans.recommend import read_plan

from ..quick_part import quick
from .conftest import PARTIES, adversary

WORDS = tuple(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(90))
EFFORT = {"rounds": 1, "documents": 41, "states": 2}
PRIVATE = ("dp-central", "dp-distributed", "dp-local", "fortress")
MODELS = {
    "prodlda": {"model.n_topics": 2, "model.hidden": 40, "model.dropout": 0.0, "model.device": "cpu"},
    "lda": {"model.n_topics": 4},
    "lda-vi": {"model.n_topics": 4},
    "neural-lda": {"model.n_topics": 2, "model.hidden": 40, "model.dropout": 0.0, "model.device": "cpu"},
    "nmf": {"model.n_topics": 4, "model.weighting": "counts"},
}
FEW = [(PRIVATE[place % len(PRIVATE)], model) for place, model in enumerate(MODELS)]
Facts = Callable[..., PublicFacts]


class AsLibrariesDo(FusedKernels):
    """A fault to be found: a product whose order of summation goes by the number of rows."""

    def dense(self, rows: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        left, right = rows.numpy(), weights.numpy()
        out = np.zeros((len(left), right.shape[1]), left.dtype) + (0 if bias is None else bias.numpy())
        step = -1 if len(left) % 2 else 1
        add_product(left[:, ::step], right[::step], out)
        return torch.from_numpy(out)


@pytest.fixture
def public(tmp_path: Path) -> Facts:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS))

    def facts(profile: str, model: str = "prodlda", **settings: Any) -> PublicFacts:
        listed = {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(path)}
        plan = read_plan(None, {"profile": profile, "model.name": model, **MODELS[model], **listed, **settings})
        return PublicFacts(PARTIES, agree(plan))

    return facts


def tried(facts: PublicFacts, seed: int = 0, documents: int = 41) -> tuple[Estimate, Estimate]:
    """How far neighbours came, and how far the same sums came with nobody left out."""
    counts = sparse.csr_array(np.random.default_rng(2).poisson(0.5, (documents, len(WORDS))))
    truth = GroundTruth(WORDS, {"north": counts}, {}, public=facts)
    posed = pose(truth, EFFORT, np.random.default_rng(seed))
    view = AdversaryView(adversary(), facts, {"request": ()}, WORDS, question=posed.question)
    chance = replace(view, question=posed.redrawn(np.random.default_rng(1)))
    truth = replace(truth, answer=posed.answer)
    told, control = (measure(judge(attack(one, EFFORT), truth)) for one in (view, chance))
    return told, control


def measure(judged: Score) -> Estimate:
    found = judged.measures[FARTHEST]
    assert isinstance(found, Estimate)
    return found


@pytest.mark.parametrize(("profile", "model"), quick([(profile, model) for profile in PRIVATE for model in MODELS], *FEW))
def test_our_rows_keep_within_what_noise_is_made_for(public: Facts, profile: str, model: str) -> None:
    told, chance = tried(public(profile, model))
    assert 0.4 < told.value <= 1.0  # and it is no blunt tool
    assert told.low < 1.0
    assert chance.value == 0.0
    assert told.ceiling == 2 * 41 - 1


@pytest.mark.parametrize("profile", quick(PRIVATE, PRIVATE[0]))
@pytest.mark.parametrize("dtype", quick(["float32", "float64"], "float32"))
def test_a_model_that_adds_as_libraries_do_is_refuted(
    public: Facts, profile: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = public(profile, **{"model.dtype": dtype})
    assert tried(facts)[0].low < 1.0
    monkeypatch.setattr(ProdLDA, "_kernels", AsLibrariesDo())
    told, chance = tried(public(profile, **{"model.dtype": dtype}))
    assert told.low > 1.5 > chance.high


@pytest.mark.parametrize("unit", quick(["document", "person"], "person"))
def test_rows_that_are_not_clipped_are_refuted(public: Facts, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unequal = {"nmf": {"model.equal_rows": False}}  # rows that a model itself makes of length 1 need no clip
    facts = {model: public("dp-local", model, **{"privacy.unit": unit, **unequal.get(model, {})}) for model in MODELS}
    monkeypatch.setattr(Clip, "row_radius", lambda *_: 1e3)
    monkeypatch.setattr(BoundedCounts, "on_rows", lambda self, rows, terms: rows)
    for one in facts.values():
        assert tried(one)[0].low > 1.0
