"""SentenceLDA finds planted topics, also behind noise, and ends well whatever is given to it."""

import numpy as np
import pytest

import securetm
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, BrokenPromise
from securetm.mechanisms.perturbed_documents import PerturbedDocuments
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.given_documents import UnfitDocuments
from securetm.models.lda.lda import LDA
from securetm.models.lda.sentence_lda import SentenceDocuments, SentenceLDA
from tests.models.trained_by_hand import counts_of, rounds

from .planted import SAMPLERS, WORDS, planted
from .sentence_laws import spoken

# ---- what is learned ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gibbs", "mh"])
def fitted(request):
    return SentenceLDA(n_topics=3, eta=0.01, sampler=request.param).fit(planted()[0], epochs=30)


def test_planted_topics_are_found(fitted):
    tops = [{int(word[1:]) // 20 for word in words} for words in fitted.top_words(10)]
    assert sorted(tops, key=min) == [{0}, {1}, {2}]
    home = [tops.index({t}) for t in range(3)]
    fresh, shares = planted(60, seed=9)
    expected = (shares * np.diff(SentenceDocuments.of(fresh, WORDS).draw_ends)[:, None]) + fitted.alpha
    found = fitted.transform(fresh)[:, home]
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=0.02)


def test_it_is_saved_and_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    again = securetm.SentenceLDA.load(tmp_path / "model.safetensors")
    assert again == fitted
    fresh, _ = planted(20, seed=3)
    np.testing.assert_array_equal(again.transform(fresh), fitted.transform(fresh))


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


@pytest.mark.parametrize("priors", ["symmetric", "learned"])
def test_priors_are_learned_sentence_by_sentence(priors):
    """Documents mix three topics by shares that Dirichlet(0.2) gave; a topic has a third of the words, so eta is small."""
    state = SentenceLDA(n_topics=3, alpha=0.5, priors=priors).fit(planted(400)[0], epochs=40).learned.state
    assert 0.1 < state["alpha"].mean() < 0.35
    assert (state["alpha"].std() == 0) == (priors == "symmetric")
    assert 0.03 < state["eta"][0] < 0.1


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
    state = rounds(model, model.start(hidden.vocabulary, np.random.default_rng(0)), hidden, memory, 40)
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


# ---- what is given to it -----------------------------------------------------------------------------------------------

LITTLE = {
    "one word": [[[0]]],
    "one document": [[[0, 1, 0], [2]]],
    "empty": [[], []],
    "nobody's": [],
    "an empty one": [[], [[0, 1], [2]], []],
    "a sentence of two thousand": [[list(range(3)) * 700, [0]]],
}


@SAMPLERS
@pytest.mark.parametrize("name", LITTLE)
@pytest.mark.parametrize("k", [1, 7])
def test_little_input_ends_in_finite_topics(name, k, sampler):
    documents = spoken(LITTLE[name], 3)
    model = SentenceLDA(n_topics=k, sampler=sampler).fit(documents, epochs=3)
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    np.testing.assert_allclose(model.transform(documents).sum(axis=1), 1)
    np.testing.assert_array_equal(model.learned.state["counts"].sum(axis=0), documents.counts.sum(axis=0))
    assert np.isfinite(model.score(documents))


@SAMPLERS
@pytest.mark.parametrize("counts", [-(2**63), 2**63 - 1, -1])
def test_a_table_that_makes_no_sense_still_gives_topics(counts, sampler):
    """A coordinator may send anything of the right shape; what a party answers then are still its own words."""
    documents, _ = planted(10)
    model, memory = SentenceLDA(n_topics=3, sampler=sampler), {}
    state = rounds(model, model.start(documents.vocabulary, np.random.default_rng(0)), documents, memory, 1)
    forged = {**state, "counts": np.full_like(state["counts"], counts)}
    np.testing.assert_array_equal(counts_of(model, forged, documents, memory).sum(axis=0), documents.counts.sum(axis=0))
    assert np.isfinite(model.infer(forged, documents)).all()


def test_a_table_of_another_size_is_refused():
    documents, _ = planted(5)
    state = SentenceLDA(n_topics=3).start(documents.vocabulary, np.random.default_rng(0))
    with pytest.raises(BrokenPromise):
        counts_of(SentenceLDA(n_topics=4), state, documents, {})
    with pytest.raises(BrokenPromise):
        SentenceLDA(n_topics=3).infer(state, spoken([[[0]]], 3))


@pytest.mark.parametrize(
    ("setting", "value"), [("n_topics", 0), ("alpha", 0.0), ("sampler", "vb"), ("longest", -1), ("cycles", 0)]
)
def test_settings_are_checked_before_anything_is_read(setting, value):
    with pytest.raises(BadSetting) as refusal:
        SentenceLDA(**{setting: value})
    assert refusal.value.name == setting
