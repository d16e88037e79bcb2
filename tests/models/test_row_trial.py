"""The trial of rows: our models pass it on this processor, and models whose rows hang on their neighbours by one bit do not."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.matched import Matched
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.neural.cpu_kernels import FusedKernels
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_kernels import TorchKernels
from securetm.models.nmf import NMF
from securetm.models.trials import RowsDepend, check_rows

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
