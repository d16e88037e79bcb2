"""Both samplers of LDA draw a document from its exact posterior, with one alpha for all topics or one for each."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from securetm.models.given_documents import as_documents
from securetm.models.lda.counting import Assignments
from securetm.models.lda.lda import LDA, LdaDocuments
from tests.models.sentence.sentence_laws import distance, posterior
from tests.quick_part import quick

COPIES = 30_000


def of(words, others, alpha):
    """The chance of every assignment of one document's tokens: of sentences of one word each."""
    return posterior([[word] for word in words], others, alpha, 0.3)


def table_of(model, counts, alpha, step=0):
    state = model.start([""] * counts.shape[1], np.random.default_rng(1))
    return model.table({**state, "counts": counts.astype(float), "alpha": np.array(alpha), "step": np.array([step])})


def held_by(model, words):
    documents = as_documents(np.tile(np.bincount(words, minlength=4), (COPIES, 1)))
    return documents, model.read(documents, 4)


CASES = [([0.1, 1.0, 0.4], [0, 0, 1, 3]), (np.linspace(0.2, 0.6, 9), [0, 3]), ([0.3] * 17, [2])]  # 8 topics fill a register
FEW = quick(product(("gibbs", "mh"), range(3)), ("gibbs", 0), ("mh", 0), ("mh", 1), ("gibbs", 2))


@pytest.mark.parametrize(("sampler", "case"), FEW)
def test_a_new_document_draws_from_its_exact_posterior(sampler, case):
    alpha, words = CASES[case]
    others = np.random.default_rng(len(alpha)).integers(0, 6, (len(alpha), 4))
    model = LDA(n_topics=len(alpha), eta=0.3, sweeps=30, sampler=sampler)
    documents, held = held_by(model, words)
    nothing = Assignments.remembered({}).recall(held.draw_ends, held.names(documents.keys))
    drawn = held.redrawn(table_of(model, others, alpha), nothing, model.sweeps, 1).reshape(COPIES, len(words))
    assert distance(drawn, of(words, others, alpha)) < 0.02


@pytest.mark.parametrize(("sampler", "case"), FEW)
def test_a_counted_document_draws_as_if_it_were_not_in_the_table(sampler, case):
    """Its old topics are far from where it belongs; the table counts them, and it takes them out again."""
    alpha, words = CASES[case]
    k = len(alpha)
    others = np.random.default_rng(k).integers(0, 4, (k, 4))
    old = np.zeros(len(words), dtype=np.uint16)
    table = others.copy()
    np.add.at(table, (old, words), 1)
    model = LDA(n_topics=k, eta=0.3, sweeps=30, sampler=sampler)
    documents, held = held_by(model, words)
    known = Assignments(held.names(documents.keys), np.zeros(COPIES, int), held.draw_ends, np.tile(old, COPIES))
    drawn = held.redrawn(table_of(model, table, alpha, step=1), known, model.sweeps, 1).reshape(COPIES, len(words))
    assert distance(drawn, of(words, others, alpha)) < 0.02


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_a_sweep_leaves_the_posterior_as_it_is(sampler):
    """One sweep is not enough to forget a wrong start, so it must begin right and stay right."""
    alpha, words = [0.1, 1.0, 0.4], [0, 0, 1, 3]
    others = np.random.default_rng(3).integers(0, 6, (3, 4))
    expected = of(words, others, alpha)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(expected), COPIES, p=list(expected.values()))
    old = np.array(list(expected), dtype=np.uint16)[chosen]
    model = LDA(n_topics=3, eta=0.3, sweeps=1, sampler=sampler, cycles=2)
    documents, held = held_by(model, words)
    known = Assignments(held.names(documents.keys), np.full(COPIES, -1), held.draw_ends, old.ravel())
    drawn = held.redrawn(table_of(model, others, alpha, step=1), known, model.sweeps, 1).reshape(COPIES, 4)
    assert (drawn != old).any(axis=1).mean() > 0.2
    assert distance(drawn, expected) < 0.02


def test_which_sampler_it_is_goes_by_the_number_of_topics():
    documents = as_documents(np.ones((2, 3), dtype=int))
    read = {
        (k, name): LDA(n_topics=k, sampler=name, cycles=3).read(documents, 3) for k in (2, 5_000) for name in ("auto", "mh")
    }
    assert all(isinstance(held, LdaDocuments) for held in read.values())
    assert {setting: held.cycles for setting, held in read.items()} == {
        (2, "auto"): 0,
        (5_000, "auto"): 3,
        (2, "mh"): 3,
        (5_000, "mh"): 3,
    }
