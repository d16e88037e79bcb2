"""Words through sums: in a sketch, behind noise, under a key, and weighed: rows that no other document changes, words found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Query
from securetm.corpus.corpus import Corpus
from securetm.errors import Mismatch
from securetm.federation.budget.prices import spend_of
from securetm.models.lda.lda_vi import EXPONENTS, DocumentBounds, VariationalLDA, exponents_for, weights_in
from securetm.models.public_knowledge import PublicKnowledge
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
from securetm.models.questions.word_sketch import LONGEST, SketchTooSmall, WordSketch, packed, words_in
from securetm.models.questions.word_sums import (
    CELLS,
    OPEN,
    OPEN_BYTES,
    ROUNDS,
    WordSearch,
    WordSums,
    bits_of,
    found_words,
    open_among,
    opening,
    required,
    share_of_documents,
)
from securetm.plans.profiles import cohort_of, read_profile
from securetm.testing.query_laws import QueryLaws, rows_of, summed

from .trained_by_hand import planted, sum_of

LISTED = tuple(f"listed{number:04}" for number in range(3000))
FIVE = tuple(f"party {number}" for number in range(5))


class TestWordSums(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return WordSums()


class TestOpenWordSums(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        """Every other bit is set, so that of any words some are open, as of a list that a coordinator made up."""
        return WordSums(np.full(OPEN_BYTES, 0b11101110, dtype=np.uint8))


def documents(rng: np.random.Generator, count: int) -> list[str]:
    """Texts whose words are the rarer, the further they stand in the list; every tenth has a word that is on no list."""
    ranks = np.minimum(rng.pareto(0.7, (count, 12)) * 3, len(LISTED) - 1).astype(int)
    return [" ".join([*(LISTED[n] for n in row), *(["unlisted"] * (i % 10 == 0))]) for i, row in enumerate(ranks)]


def test_a_document_more_changes_no_bit_of_the_other_rows() -> None:
    """One more document brings new words, so that all words after them move to other columns."""
    texts = documents(np.random.default_rng(1), 40)
    few = Corpus.from_strings(texts[1:], name="few")
    more = Corpus.from_strings(["aardvark zyzzyva never before", *texts[1:]], name="more")
    for other in (
        more,
        Corpus.from_strings([" ".join(text.split()[::-1]) for text in ["aardvark", *texts[1:]]], name="turned"),
    ):
        np.testing.assert_array_equal(rows_of(WordSums(), other)[1:], rows_of(WordSums(), few))


def test_every_row_has_the_same_length_whatever_the_document() -> None:
    texts = ["river", "river " * 1000, " ".join(LISTED), "river lake", " ".join(f"own{n}x" for n in range(500))]
    lengths = np.linalg.norm(rows_of(WordSums(), Corpus.from_strings(texts, name="lengths")), axis=1)
    assert (lengths <= 1).all()
    assert lengths == pytest.approx(1)


def weights_of(corpus: Corpus) -> dict[str, float]:
    """The weight that each word has in the exact sum of rows over all words."""
    held = (corpus.counts > 0).astype(float)
    weights = np.asarray(held.multiply(1 / np.sqrt(np.maximum(held.sum(axis=1), 1))[:, None]).sum(axis=0))
    return dict(zip(corpus.vocabulary, weights.tolist(), strict=True))


def searched(parts: Sequence[Corpus], noise: float, rng: np.random.Generator, rounds: int = ROUNDS) -> WordSearch:
    """What is found in so many sums over these parties, all of them together with noise of this deviation."""
    search, deviation = WordSearch(LISTED), noise * rounds**0.5
    for _ in range(rounds):
        query = WordSums(search.about.get(OPEN))
        cells = np.sum([summed(query, part, radius=1.0) for part in parts], axis=0)
        search.take(Answer({"cells": cells + rng.normal(0, deviation, CELLS)}, deviation=deviation))
    return search


def test_five_parties_find_what_a_curator_would_keep_and_more() -> None:
    """The curator has every document and the exact words, and asks once."""
    texts = documents(np.random.default_rng(3), 4000)
    parts = [Corpus.from_strings(texts[n::5], name=str(n)) for n in range(5)]
    exact = weights_of(Corpus.from_strings(texts, name="whole"))
    rng, noise = np.random.default_rng(0), 2.0
    kept = {word for word, weight in exact.items() if weight + rng.normal(0, noise) > 1 + 7.3 * noise}
    found, counted, counts = found_words(searched(parts, noise, rng))
    assert len(kept) > 50
    assert len(kept & set(found)) >= 0.9 * len(kept & set(LISTED))
    assert len(set(found) - set(exact)) <= 5
    assert counted == 0
    assert counts.min() >= 1
    assert "unlisted" not in found  # no list has it, so nobody can look it up
    assert len(found) > 1.1 * len(searched(parts, noise, rng, rounds=1).words()[0])  # the same budget, asked once


def test_words_in_most_documents_are_left_out_where_their_number_is_told() -> None:
    """The share is told from the noised sums alone: no further question is asked."""
    rng, count = np.random.default_rng(5), 4000
    often = {"listed0000": 0.9, "listed0001": 0.7, "listed0002": 0.25}
    had = {word: rng.random(count) < share for word, share in often.items()}
    texts = [
        " ".join([*(LISTED[3 + n] for n in rng.choice(300, 9, replace=False)), *(word for word in often if had[word][i])])
        for i in range(count)
    ]
    search = searched([Corpus.from_strings(texts, name="all")], 2.0, rng)
    everything, few = found_words(search)[0], found_words(search, count, 0.5)
    assert set(everything) - set(few[0]) == {"listed0000", "listed0001"}
    assert len(few[0]) == len(few[2])
    told = dict(zip(everything, share_of_documents(search.words()[1], count), strict=True))
    assert {word: told[word] for word in often} == pytest.approx(often, abs=0.12)


def test_closed_words_leave_the_whole_row_to_open_ones() -> None:
    corpus = Corpus.from_strings(["river lake stone", "river lake", "stone"], name="few")
    open_words = opening(bits_of(packed(["stone"])))[OPEN]
    rows = rows_of(WordSums(open_words), corpus)
    alone = rows_of(WordSums(), Corpus.from_strings(["stone"], name="alone"))[0]
    np.testing.assert_array_equal(rows, [alone, np.zeros(CELLS), alone])


def test_a_closed_word_hardly_ever_counts_as_open() -> None:
    listed = bits_of(packed([f"open{n}" for n in range(150_000)]))
    filtered = opening(listed)[OPEN]
    assert filtered.shape == (OPEN_BYTES,)
    assert open_among(filtered, listed).all()
    assert open_among(filtered, bits_of(packed([f"closed{n}" for n in range(20_000)]))).mean() < 0.02


def test_noise_alone_brings_hardly_a_word() -> None:
    """With chance 1/2 for a word on average, more than 8 come less often than once in 10^7 lists."""
    assert len(searched([], 3.0, np.random.default_rng(0)).words()[0]) <= 8
    needed = required(300_000)
    assert (np.diff(needed) >= 0).all()
    assert 1.5 < needed[0] < 3 < needed[1000] < needed[-1] < 6


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "fortress"])
def test_its_noise_is_that_of_the_selection_and_so_is_its_event(profile: str) -> None:
    chosen = read_profile(profile, {"words": 5.0, "noise_multiplier": 1.5})
    route = compile_route(WordSums().terms, chosen, cohort_of(chosen, FIVE))
    noising = next(step for step in route.steps if step.event is not None)
    spend, noise = spend_of(route), 5.0 * ROUNDS**0.5  # in each of the sums, so that all of them cost what one would
    assert spend is not None
    if profile == "dp-central":
        assert isinstance(spend.event, GaussianDpEvent)
        assert spend.event.noise_multiplier == pytest.approx(noise, rel=1e-12)
        assert noising.mechanism.total_deviation(noising.after) == pytest.approx(noise * noising.after.l2, rel=1e-6)
    assert route.terms.deviation == pytest.approx(0.0 if profile == "dp-central" else noise * route.terms.l2, rel=0.3)
    assert spend.failure_probability < 1e-9
    thrice, once = (total(asked, 1e-5).epsilon for asked in ([replace(spend, count=ROUNDS)], [Spend(GaussianDpEvent(5.0))]))
    assert thrice == pytest.approx(once, rel=0.03 if profile == "dp-central" else 0.3)


def test_a_profile_without_a_selection_of_words_does_not_pay_for_them() -> None:
    chosen = read_profile("dp-central")
    bare = type(chosen)(**{**vars(chosen), "mechanisms": tuple(m for m in chosen.mechanisms if m.naming_threshold() is None)})
    with pytest.raises(Mismatch, match="which words occur"):
        compile_route(WordSums().terms, bare, cohort_of(bare, FIVE))


# ---- the sketch ------------------------------------------------------------------------------------------------------------


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


# ---- under a key -----------------------------------------------------------------------------------------------------------


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


# ---- weights ---------------------------------------------------------------------------------------------------------------


WORDS = 40


def _knowledge(topics: int) -> PublicKnowledge:
    rng = np.random.default_rng(5)
    frequencies = np.geomspace(1.0, 1e-5, WORDS)
    vectors = rng.normal(size=(WORDS, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = rng.dirichlet(np.ones(WORDS), topics)
    return PublicKnowledge(table, vectors.astype(np.float32), frequencies / frequencies.sum())


def test_frequent_words_weigh_less() -> None:
    exponents = exponents_for(np.geomspace(1.0, 1e-9, 50))
    assert (np.diff(exponents) >= 0).all()
    assert exponents[0] < 0 < exponents[-1]
    assert np.abs(exponents).max() <= 4
    assert not exponents_for(np.full(7, 3.0)).any()
    assert np.isfinite(exponents_for(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("asked", [np.full(3, 2**40), np.full(3, -(2**40))])
def test_a_lie_about_weights_is_clamped(asked: Any) -> None:
    assert set(np.abs(np.log2(weights_in({EXPONENTS: asked}))).tolist()) == {4.0}


def test_a_row_is_as_long_as_its_weighted_counts() -> None:
    (corpus, _), model = planted(12), VariationalLDA(n_topics=3)
    words = len(corpus.vocabulary)
    state = model.start(corpus.vocabulary, np.random.default_rng(0))
    state = {**state, EXPONENTS: np.arange(words) % 5 - 2}
    bounds = DocumentBounds.found(model, state, model.counted(corpus, words))
    rows = np.array([bounds.gradient(np.eye(len(corpus))[n]) for n in range(len(corpus))])
    np.testing.assert_allclose(bounds.norms(np.arange(len(corpus))), np.linalg.norm(rows, axis=1), rtol=1e-12)
    plain = DocumentBounds.found(model, {**state, EXPONENTS: np.zeros(words, np.int64)}, model.counted(corpus, words))
    weighted = plain.gradient(np.ones(len(corpus))).reshape(3, -1) * weights_in(state)
    assert np.array_equal(bounds.gradient(np.ones(len(corpus))), weighted.ravel())  # to the last bit


def test_weights_are_undone_with_their_noise() -> None:
    model = VariationalLDA(n_topics=3, eta=0.1)
    state = model.started([f"w{n}" for n in range(WORDS)], _knowledge(3), np.random.default_rng(0))
    weights = weights_in(state)
    assert len(set(weights.tolist())) > 2
    true = np.full((3, WORDS), 50.0)
    plain = model.update(state, Answer({"counts": true * weights}))
    np.testing.assert_array_equal(plain["counts"], true)
    noised = model.update(state, Answer({"counts": true * weights}, deviation=2.0))
    variance = np.square(noised["noise_by_word"]) * noised["noise"][0]
    np.testing.assert_allclose(np.sqrt(variance), 2.0 / weights, rtol=1e-12)
