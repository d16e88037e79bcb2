"""Rows that hang on their neighbours and answers that are no sums are refused; what keeps documents apart is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from securetm.contracts import Block, Terms, Unit
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.matched import Matched
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.neural.cpu_kernels import FusedKernels
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.models.nmf import NMF
from securetm.models.trials import CouplesDocuments, RowsDepend, check_additive, check_rows

from ..laws.toys import Mixture

OURS = {
    "prodlda in 64 bits": ProdLDA(n_topics=20, hidden=37, device="cpu", dtype="float64"),
    "prodlda as it is": ProdLDA(device="cpu"),
    "lda": LDA(n_topics=5),
    "lda-vi": VariationalLDA(n_topics=5),
    "nmf": NMF(n_topics=5),
    "nmf of counts": NMF(n_topics=50, weighting="counts", passes=3),
    "sentence": SentenceLDA(n_topics=5),
    "matched": Matched(n_topics=5),
}


@pytest.mark.parametrize("name", OURS)
def test_our_models_rows_depend_on_nothing_beside_them(name):
    check_rows(OURS[name])


class Library(FusedKernels):
    """The same passes with a product as libraries have it: how many rows there are decides in which order a row is added up."""

    def dense(self, rows, weights, bias=None):
        order = range(weights.shape[0]) if len(rows) % 2 else reversed(range(weights.shape[0]))
        product = sum(rows[:, [k]].double() * weights[[k]].double() for k in order)
        return (product if bias is None else product + bias).to(rows.dtype).contiguous()


class Carried(FusedKernels):
    """A length in whose last bit the number of rows shows."""

    def squared_lengths(self, rows):
        return super().squared_lengths(rows) * (1.0 + np.finfo(float).eps * (len(rows) > 4))


@pytest.mark.parametrize(("kind", "alpha"), [(Library, 0.97), (Carried, 0.98)])  # a model of equal settings is not tried again
def test_one_bit_is_enough_to_be_refused(kind, alpha):
    model = ProdLDA(n_topics=6, hidden=9, dtype="float64", device="cpu", alpha=alpha)
    model.__dict__["_kernels"] = kind()
    with pytest.raises(RowsDepend, match="on this processor"):
        check_rows(model)


@dataclass(frozen=True)
class SharedAcross(LDA):
    """Documents of a batch are counted a little more the more of them there are."""

    def query(self, state):
        asked = super().query(state)
        return Louder(asked, asked.terms)


@dataclass(frozen=True)
class Louder:
    asked: object
    terms: object

    def answer(self, documents, clipped_sum, memory, rng):
        if len(documents) > 3:
            documents = documents.replace(counts=2 * documents.counts)
        self.asked.answer(documents, clipped_sum, memory, rng)


def test_counts_are_tried_too():
    with pytest.raises(RowsDepend):
        check_rows(SharedAcross(n_topics=5))


def test_what_adds_in_an_order_that_nobody_fixes_is_refused_untried():
    model = ProdLDA(n_topics=6, hidden=9, device="cpu")
    model.__dict__["_kernels"] = TorchKernels(torch.device("cpu"))
    with pytest.raises(RowsDepend, match="GPU"):
        check_rows(model)
    assert not model.in_fixed_order


# ---- sums over documents ---------------------------------------------------------------------------------------------------


torch.set_num_threads(1)


@pytest.mark.parametrize(("dtype", "epochs"), [("float32", 0), ("float64", 1)])
def test_prodlda_is_additive(dtype, epochs):
    check_additive(ProdLDA(n_topics=4, hidden=6, dtype=dtype, device="cpu", local_epochs=epochs))


def test_a_model_of_counts_is_additive():
    check_additive(Mixture())


class Query:
    def __init__(self, rows, terms=None):
        self.rows, self.terms = rows, terms or Terms((Block("words", (30,)),), bits=64)

    def answer(self, documents, clipped_sum, memory, rng):
        clipped_sum.add(self.rows(documents, rng), np.arange(len(documents)))


class Toy:
    embedding_size = 0

    def __init__(self, rows):
        self.rows = rows

    def start(self, vocabulary, rng):
        return {}

    def query(self, state):
        return Query(self.rows)


def dense(documents):
    return documents.counts.toarray().astype(float)


COUPLED_ROWS = {
    "batch normalised": lambda d, rng: (dense(d) - dense(d).mean(0)) / (dense(d).std(0) + 1e-3),
    "averaged": lambda d, rng: dense(d) / len(d),
    "noise by place": lambda d, rng: dense(d) * (rng.random((len(d), 30)) < 0.5),
    "scaled by the longest": lambda d, rng: dense(d) / dense(d).sum(1).max(),
    "one more": lambda d, rng: dense(d) + (np.arange(len(d)) == 0)[:, None],
}


@pytest.mark.parametrize("name", COUPLED_ROWS)
def test_a_model_that_couples_is_refused(name):
    with pytest.raises(CouplesDocuments):
        check_additive(Toy(COUPLED_ROWS[name]))


def test_answers_of_a_whole_party_are_not_sums_over_documents():
    toy = Toy(COUPLED_ROWS["averaged"])
    toy.query = lambda state: Query(toy.rows, Terms((Block("words", (30,)),), unit=Unit.PARTY))
    check_additive(toy)
