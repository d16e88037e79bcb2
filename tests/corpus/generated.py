"""Corpora that hypothesis makes up, and the invariants that every corpus keeps. No test of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from securetm.corpus.corpus import Corpus

WORDS = tuple("abcdefgh")


@st.composite
def corpora(draw: Any, name: str = "made up", least: int = 0) -> Corpus:
    documents = draw(st.lists(st.lists(st.lists(st.sampled_from(WORDS), max_size=5), max_size=4), min_size=least, max_size=8))
    vocabulary = tuple(sorted({w for d in documents for s in d for w in s} | {"a"}))
    place = {w: i for i, w in enumerate(vocabulary)}
    tokens = np.array([place[w] for d in documents for s in d for w in s], dtype=np.int32)
    token_ends = np.cumsum([sum(map(len, d)) for d in documents], dtype=np.int64)
    sentence_ends = np.cumsum([len(s) for d in documents for s in d], dtype=np.int64)
    n = len(documents)
    return Corpus.from_tokens(
        tokens,
        token_ends,
        vocabulary,
        sentence_ends=sentence_ends,
        name=name,
        labels=np.array([f"label {i % 3}" for i in range(n)], dtype=np.str_),
        persons=np.arange(n) // 2,
        embeddings=np.arange(2 * n).reshape(n, 2),
    )


def sentences_of(corpus: Corpus) -> list[list[list[str]]]:
    """Each document as sentences of words: the slow and obvious way."""
    ends, documents, start = set(corpus.sentence_ends.tolist()), [], 0
    for end in corpus.token_ends.tolist():
        document: list[list[str]] = [[]]
        for position in range(start, end):
            document[-1].append(corpus.vocabulary[corpus.tokens[position]])
            if position + 1 in ends:
                document.append([])
        documents.append([s for s in document if s])
        start = end
    return documents


def words_of(corpus: Corpus) -> list[list[str]]:
    """Each document's words as a sorted list, out of the counts."""
    dense = corpus.counts.toarray()
    return [sorted(w for w, n in zip(corpus.vocabulary, row, strict=True) for _ in range(n)) for row in dense]


def check(corpus: Corpus) -> None:
    """What must hold of every corpus, wherever it came from."""
    assert corpus.counts.dtype == np.int32
    assert corpus.counts.has_canonical_format
    assert corpus.counts.shape == (len(corpus), len(corpus.vocabulary))
    assert not (corpus.counts.data <= 0).any()
    if corpus.tokens is None:
        return
    assert corpus.tokens.dtype == np.int32
    assert (np.diff(corpus.sentence_ends, prepend=0) > 0).all()
    assert set(corpus.token_ends.tolist()) - {0} <= set(corpus.sentence_ends.tolist())
    assert words_of(corpus) == [sorted(w for s in d for w in s) for d in sentences_of(corpus)]
