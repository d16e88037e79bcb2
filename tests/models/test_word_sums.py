"""Words in one noised sum: rows that no other document changes, and words that are found again by a public list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Query
from securetm.corpus.corpus import Corpus
from securetm.errors import Mismatch
from securetm.federation.budget.prices import spend_of
from securetm.models.questions.word_sketch import packed
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
