"""N-grams with a topic model beside them: chances that sum to one, and numbers worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.peers.ngrams import ELSEWHERE, NGrams, _discounts, adapted, contexts, topical
from securetm.contracts import Array
from securetm.models.given_documents import as_documents
from securetm.models.lda.lda import LDA
from securetm.models.lda.matched import MatchedLDA

A, B, C = range(3)


# ---- n-grams ---------------------------------------------------------------------------------------------------------


def test_pairs_of_words_by_hand() -> None:
    """Text: a b a c. Every pair came once, so one half is taken of each; a came after two kinds, b and c after one."""
    model = NGrams.from_tokens(np.array([A, B, A, C]), np.array([4]), words=3, order=2)
    single = np.array([1.5, 0.5, 0.5]) / 4 + (1.5 / 4) / 3
    np.testing.assert_allclose(single, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(model.after(np.array([A])), [0.25, 0.375, 0.375])  # 0, 1/4 and 1/4, and half of the above
    np.testing.assert_allclose(model.after(np.array([C])), single)  # nothing ever came after c
    np.testing.assert_allclose(model.after(np.array([], dtype=np.int64)), [0.75, 0.125, 0.125])  # a began the only sentence
    np.testing.assert_allclose(model.chances(np.array([A, A, C]), np.array([2, 3])), [0.75, 0.25, 0.125])


def test_discounts_are_those_of_chen_and_goodman() -> None:
    counts = np.repeat([1, 2, 3, 4, 9], [60, 20, 10, 5, 2])
    share = 60 / 100
    expected: list[float] = [0, 1 - 2 * share * 20 / 60, 2 - 3 * share * 10 / 20, 3 - 4 * share * 5 / 10]
    np.testing.assert_allclose(_discounts(counts), expected)
    np.testing.assert_array_equal(_discounts(np.array([1, 1, 7])), [0, 0.5, 0.5, 0.5])


texts = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=0, max_size=12)


@given(texts, st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_after_every_history_chances_sum_to_one(sentences: list[list[int]], order: int) -> None:
    tokens = np.array([word for sentence in sentences for word in sentence], dtype=np.int64)
    model = NGrams.from_tokens(
        tokens, np.cumsum([len(sentence) for sentence in sentences]), words=5, order=order
    )  # 4 is never seen
    for length in range(3):
        for history in product((0, 1, 4), repeat=length):
            chances = model.after(np.array(history, dtype=np.int64))
            assert chances.sum() == pytest.approx(1)
            assert (chances > 0).all()


def test_a_texts_chances_are_those_after_each_words_history() -> None:
    rng = np.random.default_rng(0)
    tokens, ends = rng.integers(0, 6, 400), np.sort(rng.choice(400, 60, replace=False) + 1)
    ends[-1] = 400
    model = NGrams.from_tokens(tokens, ends, words=6)
    new, new_ends = rng.integers(0, 6, 50), np.array([1, 2, 9, 30, 50])
    starts = np.repeat([0, *new_ends[:-1]], np.diff([0, *new_ends]))
    expected = [model.after(new[start:place])[new[place]] for place, start in enumerate(starts)]
    np.testing.assert_allclose(model.chances(new, new_ends), expected)


# ---- topics ----------------------------------------------------------------------------------------------------------

TEXT = np.array([0, 1, 2, ELSEWHERE, 3, 0, 0, 2])
SENTENCES, DOCUMENTS = np.array([2, 4, 5, 7, 8]), np.array([5, 8])


def test_the_context_of_a_sentence_is_its_document_before_it() -> None:
    found = contexts(TEXT, DOCUMENTS, SENTENCES, tuple("wxyz"))
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0] * 4, [2, 0, 0, 0]])
    assert found.tokens.tolist() == [0, 1, 0, 1, 2, 0, 0]
    assert found.token_ends.tolist() == [0, 2, 5, 5, 7]
    assert found.sentence_ends.tolist() == [2, 4, 5, 7]


def learned() -> tuple[LDA, Array]:
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(30, p) for p in ([0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]) for _ in range(20)])
    return LDA(n_topics=2, alpha=0.5).fit(as_documents(counts, tuple("wxyz")), epochs=20), counts


def test_equation_30_is_the_mean_of_topics_by_what_the_context_tells() -> None:
    model, _ = learned()
    state = model.learned.state
    found = topical(model, state, TEXT, DOCUMENTS, SENTENCES)
    shares = model.infer(state, as_documents([[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0] * 4, [2, 0, 0, 0]], tuple("wxyz")))
    whole = shares @ model.topics(state)
    np.testing.assert_allclose(found, [*whole[0, :2], whole[1, 2], 0, whole[2, 3], *whole[3, [0, 0]], whole[4, 2]])
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    assert whole[1, 0] > 0.4 > whole[1, 2]
    np.testing.assert_allclose(shares[0], 0.5)  # before anything is said, all topics are alike


@pytest.mark.parametrize("kind", [LDA, MatchedLDA])
def test_text_about_few_things_is_better_said_with_topics(kind: type[LDA]) -> None:
    rng = np.random.default_rng(3)
    words = np.concatenate([rng.integers(0, 20, 60) + 20 * (d % 2) for d in range(60)])
    ends, sentences = np.arange(60, 3601, 60), np.arange(10, 3601, 10)
    ngrams = NGrams.from_tokens(words[:2400], sentences[:240], words=40)
    counts = np.array([np.bincount(document, minlength=40) for document in words[:2400].reshape(-1, 60)])
    model = kind(n_topics=2).fit(as_documents(counts), epochs=20)
    rest = (words[2400:], ends[:20], sentences[:120])
    by_topics = topical(model, model.learned.state, *rest)
    alone = ngrams.chances(rest[0], rest[2])
    assert np.log(adapted(by_topics, alone)).mean() > np.log(alone).mean()
