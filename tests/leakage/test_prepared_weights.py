"""Weights prepared so that a last bit decides whole rows: sums of neighbours lie no farther apart than the terms say.

The attack goes through the stations of a shipped profile up to the noise, which is sized by these terms. It succeeds against a
model that differs by one thing: it adds in another order for an odd number of rows, as libraries do on some processors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from securetm.contracts import Array, Cohort, Desk, Noised, Profile, Terms
from securetm.entropy import OperatingSystem
from securetm.federation.round import pour
from securetm.models.estimator import BagOfWords
from securetm.models.neural.fixed_order import add_product
from securetm.models.neural.fused import Fused
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.prodlda_losses import Shape
from securetm.profiles import read_profile

WORDS, HIDDEN, TOPICS, DOCUMENTS = 90, 40, 2, 41
COHORT = Cohort(b"", 0, ("north", "south", "west"))


class AsLibrariesDo(Fused):
    """The baseline: a product whose order of summation goes by the number of rows."""

    def dense(self, rows: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        left, right = rows.numpy(), weights.numpy()
        out = np.zeros((len(left), right.shape[1]), left.dtype) + (0 if bias is None else bias.numpy())
        step = -1 if len(left) % 2 else 1
        add_product(left[:, ::step], right[::step], out)
        return torch.from_numpy(out)


def up_to_the_noise(profile: Profile) -> Profile:
    """The stations that bound and round, without the one that adds noise or draws documents."""
    return replace(profile, mechanisms=tuple(m for m in profile.mechanisms if type(m).__name__ in ("Clip", "FixedPoint")))


def prepared(model: ProdLDA, seed: int) -> Any:
    """Finite weights under which the second layer's sums cancel, and what rounding leaves of them chooses one of two topics."""
    rng = np.random.default_rng(seed)
    state = model.start(tuple(map(str, range(WORDS))), rng)
    parts = Shape(WORDS, HIDDEN, TOPICS).views(state["weights"])
    parts["words"][...], parts["words_bias"][...] = 0, rng.uniform(0, 3, HIDDEN)
    inward, inner = np.log1p(np.exp(parts["words_bias"].astype(float))), rng.standard_normal((HIDDEN, HIDDEN))
    size, loud = (1e3, 1e6) if model.dtype == "float32" else (1e8, 1e11)
    parts["inner"][...] = size * (inner - np.outer(inward, inward @ inner) / (inward @ inward))
    parts["head"][...] = loud * rng.standard_normal(parts["head"].shape)
    parts["head"][1::2] = -parts["head"][::2]  # what is the same in all hidden units cancels
    return state


def farthest(model: ProdLDA, seed: int) -> tuple[float, Terms]:
    """How far apart the sums of neighbours came, in steps of the grid, and the terms that they were made under."""
    profile, state = up_to_the_noise(read_profile("dp-local")), prepared(model, seed)
    counts = sparse.csr_array(np.random.default_rng(2).poisson(0.2, (DOCUMENTS, WORDS)))
    documents = BagOfWords(counts, tuple(map(str, range(WORDS))), np.arange(DOCUMENTS, dtype=np.uint64) * 977)
    query, desk = model.query(state), Desk(COHORT, OperatingSystem(), {})
    terms = query.terms
    for mechanism in profile.mechanisms:
        terms = mechanism.admit(terms, COHORT)

    def total(rows: Array) -> Array:
        poured = pour(query, documents.select(rows), profile, terms, desk, {}, np.random.default_rng(0))
        return np.concatenate([block.ravel() for block in poured.vector.values()]).astype(np.float64)

    everybody = np.arange(DOCUMENTS)
    whole = total(everybody)
    return max(float(np.linalg.norm(whole - total(np.delete(everybody, i)))) for i in range(0, DOCUMENTS, 5)), terms


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_prepared_weights_move_a_sum_by_one_row_and_no_farther(dtype: str) -> None:
    for seed in (2, 3):
        apart, terms = farthest(ProdLDA(n_topics=TOPICS, hidden=HIDDEN, dtype=dtype, device="cpu", dropout=0.0), seed)
        assert terms.noised is Noised.NOT
        assert 0.5 * terms.l2 < apart <= terms.l2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_weights_break_a_model_that_adds_as_libraries_do(dtype: str) -> None:
    model = ProdLDA(n_topics=TOPICS, hidden=HIDDEN, dtype=dtype, device="cpu", dropout=0.0)
    model.__dict__["_kernels"] = AsLibrariesDo()
    found = [farthest(model, seed) for seed in (2, 3)]
    assert max(apart / terms.l2 for apart, terms in found) > 1.5
