"""Topics of sentences are drawn from the exact posterior, and every word is counted once, whoever works on it."""

import inspect
import sys
import types
from itertools import product

import numpy as np
import pytest

from securetm.models.lda import sentence_kernels, sentence_lda
from securetm.models.lda.sentence_lda import SentenceLDA

from .planted import SAMPLERS, SWEEPS
from .sentence_laws import ETA, chain, distance, drawn, exact, paper_document, paper_words, posterior, spoken

SMALL = {
    "two topics": (2, [[0, 0, 1], [3], [0, 2, 2, 2]], [0.4, 0.4], 20_000),
    "uneven alpha": (3, [[0, 0, 1], [3, 0]], [0.2, 1.5, 0.6], 20_000),
    "one sentence": (17, [[2, 2, 0]], [0.3] * 17, 20_000),
    "many topics": (7, [[0, 3], [1]], list(np.linspace(0.1, 0.9, 7)), 60_000),
    "a long sentence": (3, [[0, 1, 2, 3] * 5 + [1, 1], [0]], [0.5, 0.2, 0.9], 20_000),
}


def case(name):
    k, document, alpha, copies = SMALL[name]
    return document, np.random.default_rng(k).integers(0, 6, (k, 4)).astype(float), alpha, copies


def by_turns():
    """Every document with both samplers, counted or not by turns; the slow suite has every triple."""
    for place, (name, counted, sampler) in enumerate(product(SMALL, (False, True), SWEEPS)):
        yield pytest.param(name, counted, sampler, marks=() if place % 8 in (0, 3) else pytest.mark.slow)


@pytest.mark.parametrize(("name", "counted", "sampler"), by_turns())
def test_a_document_draws_from_its_exact_posterior(name, counted, sampler):
    document, others, alpha, copies = case(name)
    model = SentenceLDA(n_topics=len(others), eta=ETA, sweeps=SWEEPS[sampler], sampler=sampler)
    old = [s % len(others) for s in range(len(document))] if counted else None
    found = drawn(model, document, others, alpha, copies, old)
    assert distance(found, posterior(document, others, alpha)) < 0.02


@SAMPLERS
def test_no_topic_is_lost_on_the_way_through_a_long_sentence(sampler):
    """Halfway the first topic is e^4600 times as likely; at the end both are equally so, and alpha decides."""
    others = np.array([[500.0, 5.0], [5.0, 500.0]])
    model = SentenceLDA(n_topics=2, eta=ETA, sweeps=SWEEPS[sampler], sampler=sampler)
    found = drawn(model, [[0] * 1000 + [1] * 1000], others, [0.3, 0.6], 400)
    assert abs(found.mean() - 2 / 3) < 0.12


@pytest.mark.parametrize("name", ["two topics", "uneven alpha", "many topics"])
def test_the_ratio_that_was_derived_keeps_the_posterior_and_the_papers_do_not(name):
    document, others, alpha, _ = case(name)
    expected = posterior(document, others, alpha)
    law = np.array(list(expected.values()))
    states, sweep = chain(document, others, alpha, exact)
    assert states == list(expected)
    np.testing.assert_allclose(law @ sweep, law, atol=1e-12)
    for wrong in (paper_document, paper_words):
        _, sweep = chain(document, others, alpha, wrong)
        assert 0.5 * np.abs(np.linalg.matrix_power(sweep, 200)[0] - law).sum() > 0.03


_THEN = "            moves = then.chance *"
_ONE_WORD = """            now = SentenceTopic(now.z, _proposed(w, now.z, given, proposals), 0)
            then = SentenceTopic(new, _proposed(w, new, given, proposals), 0)
"""
_LEAVES = "uniform(given.noise[d], drawn + 2) * now.chance"
_OWN = " * (document.here[now.z] + given.alpha[now.z]) / (document.here[now.z] + 1 + given.alpha[now.z])"
MUTANTS = {
    "equation 27": (_LEAVES, _LEAVES + _OWN),
    "equation 28": (_THEN, _ONE_WORD + _THEN),
    "no proposal in the ratio": ("* _proposed(w, now.z, given, proposals)", "* 1.0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_another_ratio_would_be_seen(name, monkeypatch):
    right, wrong = MUTANTS[name]
    source = inspect.getsource(sentence_kernels)
    assert source.count(right) == 1
    mutant = types.ModuleType("mutant")
    monkeypatch.setitem(sys.modules, "mutant", mutant)
    exec(source.replace(right, wrong).replace("cache=True, ", ""), mutant.__dict__)
    monkeypatch.setattr(sentence_lda, "resample_by_proposals", mutant.resample_by_proposals)
    with pytest.raises(AssertionError):
        test_a_document_draws_from_its_exact_posterior("uneven alpha", False, "mh")


def test_no_row_names_a_place_twice():
    """Or its length would be told too short, and a clip would let it through."""
    poured = []
    clipped_sum = types.SimpleNamespace(add=lambda rows, owners: poured.append(rows))
    model = SentenceLDA(n_topics=2)
    state = model.start(tuple("abcd"), np.random.default_rng(0))
    documents = spoken([[[0, 1, 0], [1, 0], [0, 0, 3], [3]]], 4)
    model.query(state).answer(documents, clipped_sum, {}, np.random.default_rng(0))
    (row,) = poured
    assert len(np.unique(row.indices)) == row.nnz <= 6
    assert row.sum() == 9
