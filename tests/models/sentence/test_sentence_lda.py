"""SentenceLDA finds planted topics, also behind noise, and ends well whatever is given to it."""

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.mechanisms.perturbed_documents import PerturbedDocuments
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.given_documents import UnfitDocuments
from securetm.models.lda.lda import LDA
from securetm.models.lda.sentence_lda import SentenceDocuments, SentenceLDA
from tests.models.trained_by_hand import rounds

from .planted import WORDS, planted
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
