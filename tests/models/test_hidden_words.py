"""Words under a key: rows that no other document changes, marks that show a word alone, and columns behind noise."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from securetm.contracts import Answer, Query
from securetm.corpus.corpus import Corpus
from securetm.models.questions.hidden_words import (
    CUTS,
    KEY,
    PARTS,
    SHARES,
    BucketFrequencies,
    BucketSearch,
    BucketSums,
    CellMarks,
    FoundCells,
    NoWordsKey,
    buckets_for,
    cell_name,
    frequent_buckets,
    hashed,
    is_cell_name,
    opened,
)
from securetm.testing.query_laws import QueryLaws, rows_of, summed

BUCKETS, SECRET = 1 << 10, bytes(range(KEY))
EVERY_OTHER = np.arange(0, BUCKETS, 2, dtype=np.int32)


class TestBucketFrequencies(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return BucketFrequencies(BUCKETS, SECRET)


class TestCellMarks(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return CellMarks(BUCKETS, EVERY_OTHER, SECRET)


class TestBucketSums(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return BucketSums(BUCKETS, key=SECRET)


class TestLastBucketSums(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return BucketSums(BUCKETS, EVERY_OTHER, len(CUTS), SECRET)


def test_no_word_is_hashed_without_a_key() -> None:
    """Whoever guesses a word could check the guess."""
    with pytest.raises(NoWordsKey):
        summed(BucketFrequencies(BUCKETS), Corpus.from_strings(["river lake"], name="few"))


def test_where_a_word_lies_depends_on_the_word_and_the_key_alone() -> None:
    both, one = hashed(("lake", "river"), SECRET, BUCKETS), hashed(("river",), SECRET, BUCKETS)
    assert both.cells[1] == one.cells[0]
    assert both.marks[1].tolist() == one.marks[0].tolist()
    other = [hashed(("river",), bytes([n]) * KEY, BUCKETS).cells[0] for n in range(20)]
    assert len(set(other)) > 15


def test_cells_have_names_in_the_order_of_their_numbers() -> None:
    most = buckets_for(10**7, noised=False) * PARTS - 1
    names = [cell_name(cell) for cell in (0, 1, 255, 256, 70_000, most)]
    assert names == sorted(names)
    assert all(is_cell_name(name, buckets_for(10**7, noised=False)) for name in names)
    for bad in ("river", "00000g0", "000000", "00000000", "fffffff", "0x00001", "-000001"):
        assert not is_cell_name(bad, BUCKETS)


def of_parties(texts: list[list[str]]) -> list[Corpus]:
    return [Corpus.from_strings(one, name=f"party {n}") for n, one in enumerate(texts)]


def found_in(corpora: list[Corpus], buckets: int, least: int = 2, parties: int = 2, most: int = 500) -> FoundCells:
    """The columns, as a coordinator comes to them."""
    counted = sum(summed(BucketFrequencies(buckets, SECRET), one) for one in corpora)
    open_buckets, documents = frequent_buckets(Answer({"documents": counted[:1], "buckets": counted[1:]}), 2 * most, least)
    assert documents == sum(map(len, corpora))
    marked = sum(summed(CellMarks(buckets, open_buckets, SECRET), one) for one in corpora)
    return FoundCells.of(Answer({"cells": marked.reshape(-1, 8)}), open_buckets, most, least, np.inf, parties)


def test_words_that_are_alone_are_known_and_their_numbers_of_documents_are_exact() -> None:
    corpora = of_parties([["river lake", "river boat", "storm"], ["river lake", "lake sail sail"], ["storm river"]])
    found = found_in(corpora, BUCKETS)
    documents = Counter(
        word for corpus in corpora for text in corpus.counts for word in np.array(corpus.vocabulary)[text.indices]
    )
    words = {word for corpus in corpora for word in found.words_alone(corpus.vocabulary, SECRET, BUCKETS)} - {""}
    assert words == {"river", "lake", "storm"}  # sail and boat are at one party
    totals = {word: found.totals[n, 0] for n, word in enumerate(found.words_alone(tuple(documents), SECRET, BUCKETS)) if word}
    assert totals == {word: documents[word] for word in words}


def test_a_rare_word_in_the_cell_of_a_frequent_one_is_named_by_nobody() -> None:
    """Of many words in few cells, those that share one are told to nobody: neither sum of marks is a word's own."""
    words = [f"word{n}x" for n in range(6000)]
    corpora = of_parties([[" ".join(words)] * 2, [" ".join(words[:3000])] * 2])
    found = found_in(corpora, BUCKETS, most=20_000)
    cells = Counter(hashed(tuple(words), SECRET, BUCKETS).cells.tolist())
    shared = {
        word for word, cell in zip(words, hashed(tuple(words), SECRET, BUCKETS).cells.tolist(), strict=True) if cells[cell] > 1
    }
    assert len(shared) > 500
    for corpus in corpora:
        assert not shared & set(found.words_alone(corpus.vocabulary, SECRET, BUCKETS))


def test_what_one_party_alone_has_gets_no_column() -> None:
    corpora = of_parties([["zyzzyva river"] * 9, ["river"] * 3])
    found = found_in(corpora, BUCKETS)
    assert found.words_alone(("zyzzyva", "river"), SECRET, BUCKETS) == ["river"]


def test_rows_behind_noise_are_no_longer_than_one_whichever_buckets_are_open() -> None:
    rng = np.random.default_rng(4)
    corpus = Corpus.from_strings(
        [" ".join(f"w{n}x" for n in rng.integers(0, 400, size)) for size in (1, 3, 40, 900)], name="few"
    )
    for stage, share in ((0, 1.0), (1, 0.5), (2, 0.1)):
        is_open = None if not stage else np.flatnonzero(rng.random(BUCKETS) < share)
        lengths = np.linalg.norm(rows_of(BucketSums(BUCKETS, is_open, stage, SECRET), corpus), axis=1)
        assert (lengths <= 1).all()
        assert np.isclose(lengths[-1], 1)


def test_frequent_words_are_found_behind_noise_and_hardly_any_other_cell() -> None:
    rng = np.random.default_rng(7)
    texts = [" ".join({f"word{n}x" for n in (rng.pareto(0.8, 12) * 4).astype(int)}) for _ in range(4000)]
    corpus, noise = Corpus.from_strings(texts, name="one"), 4.0
    search = BucketSearch(1 << 14)
    for share in SHARES:
        about = search.about
        is_open = np.flatnonzero(np.unpackbits(about["open"])) if about else None
        query = BucketSums(1 << 14, is_open, search.stage, SECRET)
        deviation = noise / share**0.5
        cells = summed(query, corpus, radius=1.0) + rng.normal(0, deviation, query.size)
        search.take(Answer({"cells": cells}, deviation=deviation))
    cells, weights = search.found(2000)
    held = dict(zip(hashed(corpus.vocabulary, SECRET, 1 << 14).cells.tolist(), corpus.vocabulary, strict=True))
    frequencies = dict(zip(corpus.vocabulary, corpus.document_frequencies().tolist(), strict=True))
    found = [held.get(cell) for cell in cells.tolist()]
    assert sum(word is None for word in found) <= 5  # half a cell on average comes of noise alone
    assert all(word in found for word, n in frequencies.items() if n > 250)
    assert len(found) > 20
    assert (weights > 0).all()


def test_an_open_list_says_which_buckets_and_which_sum() -> None:
    about = opened(np.array([3, 700]), BUCKETS, 2)
    assert np.flatnonzero(np.unpackbits(about["open"])).tolist() == [3, 700]
    assert about["stage"].tolist() == [2]
