"""A model whose answer is no sum over documents is refused; what keeps documents apart is not."""

import numpy as np
import pytest
import torch

from securetm.contracts import Block, Terms, Unit
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.trials import CouplesDocuments, check_additive
from tests.laws.toys import Mixture

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
