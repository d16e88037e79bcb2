"""The union of vocabularies through one sum equals the union counted in one place, and says so when it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer
from securetm.corpus.corpus import Corpus
from securetm.models.questions.word_sketch import LONGEST, SketchTooSmall, WordSketch, words_in
from tests.models.trained_by_hand import sum_of


def asked(corpora: list[Corpus], most_words: int) -> Answer:
    """The sum that parties' tables add up to."""
    sketch, total = WordSketch(most_words), None
    for corpus in corpora:
        clipped_sum = sum_of(sketch, corpus)
        total = clipped_sum.vector() if total is None else total + clipped_sum.vector()
    clipped_sum = ClippedRowSum(sketch.terms)
    clipped_sum.add(total[None, :], np.zeros(1, dtype=np.int64))
    return Answer(clipped_sum.blocks())


def parties(rng: np.random.Generator, count: int, words: int) -> list[Corpus]:
    made = []
    for number in range(count):
        texts = [" ".join(f"wört{w}" for w in rng.integers(0, words, 30)) for _ in range(40)]
        made.append(Corpus.from_strings(texts, name=f"party {number}"))
    return made


@pytest.mark.parametrize("seed", range(2))
def test_it_finds_the_union_and_its_frequencies(seed: int) -> None:
    corpora = parties(np.random.default_rng(seed), count=seed + 1, words=500)
    words, documents, frequencies = words_in(asked(corpora, most_words=600))
    whole = Corpus.concat(corpora)
    expected = dict(zip(whole.vocabulary, whole.document_frequencies().tolist(), strict=True))
    assert documents == len(whole)
    assert dict(zip(words, frequencies.tolist(), strict=True)) == expected
    assert list(words) == sorted(words)


def test_a_table_that_is_too_small_says_so() -> None:
    with pytest.raises(SketchTooSmall):
        words_in(asked(parties(np.random.default_rng(1), 3, 500), most_words=100))


def test_words_too_long_for_it_are_left_out() -> None:
    long = "x" * (LONGEST + 1)
    corpus = Corpus.from_counts(np.array([[1, 2]]), ["river", long], name="long")
    assert words_in(asked([corpus], 10))[0] == ("river",)


def test_thousands_of_words_are_found_at_the_stated_load() -> None:
    rng = np.random.default_rng(2)
    words = [f"term{n}" for n in range(20_000)]
    corpora = [Corpus.from_counts(rng.integers(0, 2, (3, len(words))), words, name=f"p{n}") for n in range(3)]
    found, _, _ = words_in(asked(corpora, most_words=20_000))
    assert set(found) == {w for c in corpora for w, n in zip(words, c.document_frequencies(), strict=True) if n}


@pytest.mark.parametrize("most_words", [2, 600, 100_000])
def test_its_size_follows_from_the_plan_alone(most_words: int) -> None:
    """144 bytes for each word that there is room for, as the README says; no document moves that."""
    terms = WordSketch(most_words).terms
    table = next(block for block in terms.layout if block.name == "cells")
    assert np.prod(table.shape) * terms.bits // 8 == pytest.approx(144 * most_words, rel=0.01, abs=300)
    few, many = (parties(np.random.default_rng(0), 1, words)[0] for words in (5, 500))
    sizes = []
    for corpus in (few, many):
        clipped_sum = ClippedRowSum(terms)
        WordSketch(most_words).answer(corpus, clipped_sum, {}, np.random.default_rng(0))
        sizes.append(clipped_sum.vector().shape)
    assert sizes[0] == sizes[1]
