"""Sentences are read as they stand: long ones are cut evenly, and whose they are stays with them."""

import numpy as np
import pytest
from scipy import sparse

from securetm.models.given_documents import UnfitDocuments, as_documents
from securetm.models.lda.sentence_lda import SentenceDocuments, SentenceLDA

from .sentence_laws import copies_of, spoken


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
