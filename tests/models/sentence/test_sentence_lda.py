"""SentenceLDA: sentences as they stand, draws from the exact posterior, planted topics, also behind noise."""

from __future__ import annotations

import inspect
import sys
import types
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from securetm.corpus.corpus import Corpus
from securetm.mechanisms.perturbed_documents import PerturbedDocuments
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.given_documents import UnfitDocuments, as_documents
from securetm.models.lda import sentence_lda
from securetm.models.lda.lda import LDA
from securetm.models.lda.sentence_lda import SentenceDocuments, SentenceLDA

from ..trained_by_hand import rounds
from .planted import SAMPLERS, SWEEPS, WORDS, planted
from .sentence_laws import ETA, chain, copies_of, distance, drawn, exact, paper_document, paper_words, posterior, spoken

# ---- what is learned ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gibbs", "mh"])
def fitted(request):
    return SentenceLDA(n_topics=3, eta=0.01, sampler=request.param).fit(planted()[0], epochs=30)


def test_planted_topics_are_found(fitted):
    tops = [{int(word[1:]) // 20 for word in words} for words in fitted.top_words(10)]
    assert sorted(tops, key=min) == [{0}, {1}, {2}]
    home = [tops.index({t}) for t in range(3)]
    fresh, shares = planted(60, seed=9)
    expected = (shares * np.diff(SentenceDocuments.from_documents(fresh, WORDS).draw_ends)[:, None]) + fitted.alpha
    found = fitted.transform(fresh)[:, home]
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=0.02)


def test_shares_of_one_sentence_are_known_in_closed_form(fitted):
    sentence = [0, 0, 25, 41, 7]
    belongs = fitted.components_[:, sentence].prod(axis=1)
    expected = (belongs / belongs.sum() + fitted.alpha) / (1 + 3 * fitted.alpha)
    np.testing.assert_allclose(fitted.transform(spoken([[sentence]], WORDS)), expected[None], rtol=1e-9)
    np.testing.assert_allclose(fitted.transform(spoken([[]], WORDS)), [[1 / 3] * 3])


def test_likelihood_is_that_of_whole_sentences(fitted):
    seen, unseen = planted(6, seed=5)[0], [[[3, 3, 21]], [[40, 5], [59]], [], [[1]], [[2, 2], [2, 30]], [[7] * 20]]
    shares, likelihood = fitted.transform(seen), []
    for share, document in zip(shares, unseen, strict=True):
        likelihood.append(sum(np.log((fitted.components_[:, words].prod(axis=1) * share).sum()) for words in document))
    found = fitted.log_likelihood(fitted.learned.state, seen, spoken(unseen, WORDS))
    np.testing.assert_allclose(found, likelihood, rtol=1e-10)
    one_word_each = spoken([[[w] for sentence in document for w in sentence] for document in unseen], WORDS)
    by_word = LDA.log_likelihood(fitted, fitted.learned.state, seen, one_word_each)
    assert by_word.shape == (6,)


def test_it_predicts_sentences_better_than_lda_does():
    documents, held = planted()[0], planted(60, seed=9)[0]
    seen, unseen = held.halves(0)
    models = [kind(n_topics=3).fit(documents, epochs=20) for kind in (SentenceLDA, LDA)]
    ours, theirs = (model.log_likelihood(model.learned.state, seen, unseen).sum() for model in models)
    assert ours > theirs + 0.02 * unseen.counts.sum()


# ---- behind noise ------------------------------------------------------------------------------------------------------


def behind(documents, epsilon=8.0):
    """The same documents behind discrete Laplace noise, which these tests draw from a secret that everybody knows."""
    law = SlotNoise(len(documents.vocabulary), epsilon, 0.2, whole=True)
    return PerturbedDocuments.of(documents, law, bytes(32))


def test_planted_topics_are_found_behind_noise():
    hidden = behind(planted()[0])
    assert hidden.tokens is None
    model, memory = SentenceLDA(n_topics=3), {}
    state = rounds(model, model.start(hidden.vocabulary, np.random.default_rng(0)), hidden, memory, 20)
    shares = model.topics(state).reshape(3, 3, 20).sum(axis=2)
    assert sorted(shares.argmax(axis=1)) == [0, 1, 2]
    assert shares.max(axis=1).min() > 0.9


def test_a_sentence_behind_noise_is_its_slots():
    documents = spoken([[list(range(7)), [1, 2, 3]], [], [[5]], [list(range(6))]], 7)
    open_, hidden = (SentenceLDA(longest=3).read(held, 7) for held in (documents, behind(documents)))
    np.testing.assert_array_equal(hidden.draw_ends, open_.draw_ends)
    np.testing.assert_array_equal(np.diff(hidden.slot_ends), [2, 2, 3, 3, 1, 3, 3])
    bare = Corpus.from_counts(documents.counts, documents.vocabulary)
    with pytest.raises(UnfitDocuments):
        SentenceLDA().read(behind(bare), 7)


# ---- draws -----------------------------------------------------------------------------------------------------------------


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
        yield pytest.param(name, counted, sampler, marks=() if place % 8 == 3 else pytest.mark.slow)


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
    source = inspect.getsource(sentence_lda)
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


# ---- sentences -------------------------------------------------------------------------------------------------------------


def as_lists(held):
    """Back to sentences, each as its words in order of number."""
    s = held.sentences
    found = []
    for d in range(len(held)):
        words = s.kinds[s.kind_ends[d] : s.kind_ends[d + 1]]
        assert len(set(words)) == len(words)
        own = range(s.draw_ends[d], s.draw_ends[d + 1])
        parts = [slice(s.word_ends[i], s.word_ends[i + 1]) for i in own]
        found.append([sorted(np.repeat(words[s.places[p]], s.counts[p]).tolist()) for p in parts])
    return found


def test_sentences_are_read_as_they_stand():
    given = [[[3, 1, 3], [1], [2, 2]], [], [[1, 0]], [[0], [0], [3, 0]]]
    held = SentenceDocuments.from_documents(spoken(given, 4), 4)
    assert as_lists(held) == [[sorted(sentence) for sentence in document] for document in given]
    np.testing.assert_array_equal(held.lengths, [0, 6, 6, 8, 12])
    empty = SentenceDocuments.from_documents(spoken([], 4), 4)
    assert len(empty) == 0
    assert empty.draw_ends.tolist() == [0]


def test_long_sentences_are_cut_into_even_parts():
    given = [[list(range(7)), [1, 2, 3]], [[5]], [list(range(6))]]
    held = SentenceDocuments.from_documents(spoken(given, 7), 7, longest=3)
    expected = [[[0, 1], [2, 3], [4, 5, 6], [1, 2, 3]], [[5]], [[0, 1, 2], [3, 4, 5]]]
    assert as_lists(held) == expected
    assert len(SentenceLDA(longest=3).read(spoken(given, 7), 7).sentences.word_ends) == 8


def test_bare_counts_have_no_sentences_and_that_is_said():
    counts = as_documents(np.ones((3, 4), dtype=np.int64))
    with pytest.raises(UnfitDocuments) as refusal:
        SentenceLDA(n_topics=2).fit(counts)
    assert "sentence_ends" in refusal.value.advice()
    fitted = SentenceLDA(n_topics=2).fit(copies_of([[0, 1], [2, 3]], 4, 5), epochs=2)
    with pytest.raises(UnfitDocuments):
        fitted.transform(sparse.csr_array(np.ones((3, 4), dtype=np.int64)))


def test_where_sentences_end_is_part_of_a_document() -> None:
    model = SentenceLDA(n_topics=3)
    joined = model.read(spoken([[[0, 1, 2, 3]]], 4, keys=[5]), 4).names(np.array([5]))
    parted = model.read(spoken([[[0, 1], [2, 3]]], 4, keys=[5]), 4).names(np.array([5]))
    assert joined != parted
