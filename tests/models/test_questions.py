"""The federation's side questions and the figures of quality: summed answers give what one corpus would have given."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import Answer, Array, Documents, Query
from securetm.errors import BadSetting, Failed
from securetm.federation.questions import PerPerson
from securetm.models import quality
from securetm.models.questions.model_quality import CooccurrenceCounts, npmi_from_answer
from securetm.models.questions.words import (
    LONGEST_WORD,
    BadWordList,
    DocumentFrequencies,
    EmptyVocabulary,
    WordList,
    choose_vocabulary,
    merge_words,
)
from securetm.testing.few_documents import FewDocuments, some_documents

from .trained_by_hand import sum_of


def ask(query: Query, *parties: Documents) -> Answer:
    """The summed answer of several parties, as plain sums give it."""
    total: dict[str, Array] = {}
    for documents in parties:
        for name, block in summed(query, documents).items():
            total[name] = total.get(name, 0) + block
    return Answer(total)


def summed(query: Query, documents: Documents) -> dict[str, Array]:
    return dict(sum_of(query, documents).blocks())


def lists(**parties: bytes) -> Answer:
    return Answer(None, {party: {"words": np.frombuffer(text, np.int8)} for party, text in parties.items()})


# ---- document frequencies ------------------------------------------------------------------------------------------


def test_document_frequencies_by_hand() -> None:
    one = FewDocuments(np.array([[2, 0, 1], [1, 0, 0]]), ("a", "b", "c"))
    two = FewDocuments(np.array([[0, 0, 5]]), ("a", "b", "c"))
    total = ask(DocumentFrequencies(3), one, two).total
    assert total is not None
    assert total["documents"].tolist() == [3]
    assert total["frequencies"].tolist() == [2, 0, 2]


def test_rows_of_a_person_are_bounded_together() -> None:
    documents = some_documents(6, 4, seed=1).belonging_to(np.array([0, 0, 0, 7, 7, 9]))
    query = PerPerson(DocumentFrequencies(4))
    clipped_sum = sum_of(query, documents, radius=1.0, persons=documents.persons)
    assert np.linalg.norm(clipped_sum.vector()) <= 3  # three persons, each row cut to length one and rounded towards zero
    assert query.terms.l2 == float("inf")


# ---- words ---------------------------------------------------------------------------------------------------------


def test_a_party_sends_only_words_that_occur_and_that_may_be_sent() -> None:
    documents = FewDocuments(np.array([[1, 1, 1, 0, 1]]), ("good", "two\nlines", "x" * (LONGEST_WORD + 1), "unused", "fine"))
    assert summed(WordList(1000), documents)["words"].tobytes() == b"fine\ngood"


def test_the_rarest_words_are_left_out_when_there_is_no_room() -> None:
    documents = FewDocuments(np.array([[1, 0, 1], [1, 1, 1], [1, 0, 0]]), ("common", "rare", "often"))
    assert summed(WordList(12), documents)["words"].tobytes() == b"common\noften"
    assert summed(WordList(11), documents)["words"].tobytes() == b"common"
    assert summed(WordList(5), documents)["words"].tobytes() == b""


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"good\n\nempty", "number 2"),
        (b"good\nbell\x07", "number 2"),
        (b"left\xe2\x80\xaeright", "number 1"),  # a right-to-left override rewrites what a screen shows
        (b" padded", "number 1"),
        (b"x" * (LONGEST_WORD + 1), "number 1"),
    ],
)
def test_bad_words_are_refused_without_being_quoted(sent: bytes, problem: str) -> None:
    with pytest.raises(BadWordList, match=problem) as caught:
        merge_words(lists(good=b"fine", mallory=sent))
    assert caught.value.party == "mallory"
    assert "bell" not in str(caught.value)


def test_too_many_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.models.questions.words.MOST_WORDS", 3)
    assert merge_words(lists(p=b"a\nb\nc")) == ("a", "b", "c")
    with pytest.raises(BadWordList, match="4 words"):
        merge_words(lists(p=b"a\nb\nc\nd"))


@pytest.mark.parametrize("values", [np.array([97, 300]), np.array([-129]), np.array([97.0]), np.full((2, 2), 97)])
def test_what_is_not_bytes_is_refused(values: Array) -> None:
    with pytest.raises(BadWordList, match="bytes"):
        merge_words(Answer(None, {"mallory": {"words": values}}))


WORDS = ("d", "c", "b", "a")


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, ("a", "b", "c", "d")),
        ({"min_df": 2}, ("b", "c", "d")),
        ({"min_df": 0.5}, ("b", "c", "d")),
        ({"max_df": 0.5}, ("a", "b", "c")),
        ({"max_df": 1}, ("a",)),
        ({"max_words": 2}, ("b", "d")),  # d in four documents; b and c tie at two, and the alphabet decides
        ({"max_words": 1, "max_df": 3}, ("b",)),
    ],
)
def test_choose_vocabulary(settings: dict[str, Any], kept: tuple[str, ...]) -> None:
    assert choose_vocabulary(WORDS, 4, np.array([4, 2, 2, 1]), **{"max_words": 10, **settings}) == kept


def test_a_word_in_exactly_the_largest_share_is_kept() -> None:
    chosen = {share: choose_vocabulary(("a", "b"), 100, np.array([29, 100]), 10, max_df=share) for share in (0.29, 1.0)}
    assert chosen[0.29] == ("a",)
    assert chosen[1.0] == ("a", "b")


def test_an_empty_vocabulary_has_a_name() -> None:
    with pytest.raises(EmptyVocabulary, match="none of 4 words"):
        choose_vocabulary(WORDS, 4, np.array([4, 2, 2, 1]), 10, min_df=5)
    with pytest.raises(BadSetting, match=r"`max_df` in vocabulary is 1\.5"):
        choose_vocabulary(WORDS, 4, np.array([4, 2, 2, 1]), 10, max_df=1.5)


# ---- quality -------------------------------------------------------------------------------------------------------


def test_npmi_of_the_summed_answer_is_that_of_one_corpus() -> None:
    parties = [some_documents(n, 30, seed=n) for n in (5, 17, 40)]
    top = np.random.default_rng(5).permuted(np.tile(np.arange(30), (6, 1)), axis=1)[:, :7]
    together = sparse.vstack([documents.counts for documents in parties])
    got = npmi_from_answer(top, ask(CooccurrenceCounts(top), *parties))
    np.testing.assert_allclose(got, quality.document_npmi(top, together), rtol=1e-12)


def test_a_sum_that_was_not_opened_is_not_read() -> None:
    with pytest.raises(Failed):
        npmi_from_answer(np.array([[0, 1]]), Answer(None))


# ---- figures by hand -------------------------------------------------------------------------------------------------------


# Words 0..4 in four documents: 0 and 1 always together, 2 sometimes with them, 3 never with 0, 4 nowhere.
COUNTS = sparse.csr_array(np.array([[2, 1, 0, 0, 0], [1, 1, 3, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 2, 0]]))


def score(together: float, first: float, second: float) -> float:
    return log(together / (first * second)) / -log(together)


def test_document_npmi_by_hand() -> None:
    top = np.array([[0, 1], [0, 2], [0, 3], [0, 4]])
    expected = [1.0, score(1 / 4, 2 / 4, 2 / 4), -1.0, -1.0]
    np.testing.assert_allclose(quality.document_npmi(top, COUNTS), expected)
    assert expected[1] == 0.0  # 0 and 2 meet exactly as often as chance would have it


def test_npmi_is_the_mean_over_pairs() -> None:
    pairs = [1.0, 0.0, -1.0, 0.0, -1.0, score(1 / 4, 2 / 4, 2 / 4)]  # 01 02 03 12 13 23
    np.testing.assert_allclose(quality.document_npmi(np.array([[0, 1, 2, 3]]), COUNTS), [np.mean(pairs)])


def test_diversity_and_top_words() -> None:
    topics = np.array([[0.1, 0.3, 0.3, 0.3], [0.4, 0.1, 0.1, 0.4]])
    top = quality.top_words(topics, 2)
    assert top.tolist() == [[1, 2], [0, 3]]
    assert quality.diversity(top) == 1.0
    assert quality.diversity(np.array([[0, 1, 2], [0, 1, 3]])) == pytest.approx(4 / 6)


def test_perplexity_of_a_uniform_model_is_its_vocabulary() -> None:
    assert quality.perplexity(np.array([3 * log(1 / 50), 5 * log(1 / 50)]), np.array([3, 5])) == pytest.approx(50)
    assert quality.perplexity(np.array([-2.0]), np.array([4])) == pytest.approx(exp(0.5))
    assert np.isnan(quality.perplexity(np.array([0.0]), np.array([0])))
