"""N-grams with a topic model beside them: chances that sum to one, and numbers worked out by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.peers.ngrams import ELSEWHERE, NGrams, contexts

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


# ---- topics ----------------------------------------------------------------------------------------------------------

TEXT = np.array([0, 1, 2, ELSEWHERE, 3, 0, 0, 2])
SENTENCES, DOCUMENTS = np.array([2, 4, 5, 7, 8]), np.array([5, 8])


def test_the_context_of_a_sentence_is_its_document_before_it() -> None:
    found = contexts(TEXT, DOCUMENTS, SENTENCES, tuple("wxyz"))
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0] * 4, [2, 0, 0, 0]])
    assert found.tokens.tolist() == [0, 1, 0, 1, 2, 0, 0]
    assert found.token_ends.tolist() == [0, 2, 5, 5, 7]
    assert found.sentence_ends.tolist() == [2, 4, 5, 7]
