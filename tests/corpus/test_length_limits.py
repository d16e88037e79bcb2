"""Documents that are too long and counts that do not fit are refused when a corpus is read, wherever they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.corpus.blocks import read_arrays, save_arrays
from securetm.corpus.corpus import Corpus
from securetm.corpus.readers import read_corpus
from securetm.corpus.tokeniser import LONGEST, Tokeniser
from securetm.errors import BadSetting, Mistake
from securetm.models.lda.lda import LDA

WORDS = ("river", "court")


@pytest.mark.parametrize("entry", [2**32 - 1, 2**32 + 1, 2**31, 10**8, LONGEST + 1, 2.0**40], ids=lambda entry: f"{entry:.3g}")
def test_a_count_that_does_not_fit_is_no_other_count(entry: float) -> None:
    """2^32 - 1 would be -1 in 32 bits, and 2^32 + 1 would be 1."""
    kind: Any = np.float64 if isinstance(entry, float) else np.int64
    for matrix in (np.array([[1, 0], [0, entry]], kind), sparse.csr_array(np.array([[1, 0], [0, entry]], kind))):
        with pytest.raises(Mistake, match=r"document 2 has .* words, and a document has at most 1,000,000"):
            Corpus.from_counts(matrix, WORDS)
        with pytest.raises(Mistake, match="a document has at most"):
            LDA(n_topics=2).fit(matrix)


def test_many_counts_are_one_document() -> None:
    row = np.full((1, 100), LONGEST // 50)
    words = [f"word{n}" for n in range(100)]
    with pytest.raises(Mistake, match="a document has at most"):
        Corpus.from_counts(row, words)
    assert Corpus.from_counts(row, words, longest=10 * LONGEST).lengths().tolist() == [2 * LONGEST]
    with pytest.raises(BadSetting, match="must lie between 1 and 2,147,483,647"):
        Corpus.from_counts(row, words, longest=2**31)


@pytest.mark.parametrize("entry", [np.inf, np.nan, -1.0, 0.5])
def test_what_is_no_count_is_refused(entry: float) -> None:
    with pytest.raises(BadSetting, match=r"whole numbers, zero or more"):
        Corpus.from_counts(np.array([[1.0, entry]]), WORDS)


@pytest.mark.parametrize("word", [2**32, 2**32 + 1, -1, 2])
def test_a_word_that_does_not_exist_is_no_other_word(word: int) -> None:
    with pytest.raises(Mistake, match="words"):
        Corpus.from_tokens(np.array([0, word]), np.array([2]), WORDS)


def test_a_long_document_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps({"text": "river court " * times}) + "\n" for times in (1, 50, 2)))
    with pytest.raises(Mistake, match=r"notes.jsonl, line 2: a document has 100 words, and a document has at most 99"):
        read_corpus(path, tokeniser=Tokeniser(longest=99))
    assert read_corpus(path, tokeniser=Tokeniser(longest=100)).lengths().tolist() == [2, 100, 4]


@pytest.mark.parametrize(("entry", "kind"), [(2**32 - 1, np.uint32), (-1, np.int32), (0, np.int32), (2**31, np.int64)])
def test_counts_of_a_file_are_those_of_a_corpus(entry: int, kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "corpus.npz"
    Corpus.from_counts(np.array([[1, 0], [0, 1]]), WORDS).save(path)
    arrays = read_arrays(path)
    save_arrays(path, {**arrays, "counts.data": np.array([entry, 1], kind)})
    with pytest.raises(Mistake, match="do not fit together"):
        Corpus.load(path)
