"""Words in one noised sum: rows that no other document changes, and words that are found again by a public list."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.contracts import Answer, Query
from securetm.corpus.corpus import Corpus
from securetm.errors import Unsound
from securetm.federation.paying import spend_of
from securetm.models.word_sketch import LONGEST
from securetm.models.word_sums import CELLS, WordSums, found_words, places_of, required, weights_of
from securetm.profile_errors import WordsNotSelected
from securetm.profiles import cohort_of, read_profile
from securetm.route import compile_route
from securetm.testing.query_laws import QueryLaws, rows_of, summed

LISTED = tuple(f"listed{number:04}" for number in range(3000))
FIVE = tuple(f"party {number}" for number in range(5))


class TestWordSums(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        return WordSums()


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


def test_without_noise_every_word_has_its_weight() -> None:
    corpus = Corpus.from_strings(documents(np.random.default_rng(2), 1500), name="whole")
    weights = weights_of(summed(WordSums(), corpus), LISTED, 0.05)
    held = (corpus.counts > 0).astype(float)
    true = dict(
        zip(corpus.vocabulary, np.asarray(held.multiply(1 / np.sqrt(held.sum(axis=1))[:, None]).sum(axis=0)), strict=True)
    )
    assert all(weights[n] == pytest.approx(true.get(LISTED[n], 0.0), abs=1.0) for n in range(len(LISTED)))


def test_five_parties_find_what_a_curator_would_keep() -> None:
    """The curator has every document and the exact words; both have noise of one deviation. Three seeds of noise."""
    texts = documents(np.random.default_rng(3), 4000)
    parts = [Corpus.from_strings(texts[n::5], name=str(n)) for n in range(5)]
    cells = np.sum([summed(WordSums(), part, radius=1.0) for part in parts], axis=0)
    whole = Corpus.from_strings(texts, name="whole")
    held = (whole.counts > 0).astype(float)
    exact = np.asarray(held.multiply(1 / np.sqrt(held.sum(axis=1))[:, None]).sum(axis=0))
    for seed in range(3):
        rng, noise = np.random.default_rng(seed), 2.0
        kept = {
            w for w, n in zip(whole.vocabulary, exact + rng.normal(0, noise, len(exact)), strict=True) if n > 1 + 7.3 * noise
        }
        answer = Answer({"cells": cells + rng.normal(0, noise, CELLS)}, deviation=noise)
        found, counted, counts = found_words(answer, LISTED)
        assert len(kept) > 50
        assert len(kept & set(found)) >= 0.9 * len(kept & set(LISTED))
        assert not set(found) - set(whole.vocabulary) or len(set(found) - set(whole.vocabulary)) <= 5
        assert counted == 0
        assert counts.min() >= 1
        assert "unlisted" not in found  # no list has it, so nobody can look it up


def test_noise_alone_brings_hardly_a_word() -> None:
    """With chance 1/2 for a word on average, more than 8 come less often than once in 10^7 lists."""
    for seed in range(3):
        assert np.count_nonzero(weights_of(np.random.default_rng(seed).normal(0, 3.0, CELLS), LISTED, 3.0)) <= 8
    needed = required(300_000)
    assert (np.diff(needed) >= 0).all()
    assert 1.5 < needed[0] < 3 < needed[1000] < needed[-1] < 6


def test_words_of_the_same_letters_have_other_cells() -> None:
    words = ("com", "mom", "moc", "net", "ten", "ram", "mar", "x" * LONGEST)
    places = [set(row) for row in places_of(words)[0].tolist()]
    assert all(len(one & other) <= 1 for n, one in enumerate(places) for other in places[:n])


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "fortress"])
def test_its_noise_is_that_of_the_selection_and_so_is_its_event(profile: str) -> None:
    chosen = read_profile(profile, {"words": 5.0, "noise_multiplier": 1.5})
    route = compile_route(WordSums().terms, chosen, cohort_of(chosen, FIVE))
    noising = next(step for step in route.steps if step.event is not None)
    spend = spend_of(route)
    assert spend is not None
    if profile == "dp-central":
        assert spend.event == GaussianDpEvent(5.0)
        assert noising.mechanism.total_deviation(noising.after) == pytest.approx(5.0 * noising.after.l2, rel=1e-6)
    assert route.terms.deviation == pytest.approx(0.0 if profile == "dp-central" else 5.0 * route.terms.l2, rel=0.3)
    assert spend.failure_probability < 1e-9


def test_a_profile_without_a_selection_of_words_does_not_pay_for_them() -> None:
    chosen = read_profile("dp-central")
    bare = type(chosen)(**{**vars(chosen), "mechanisms": tuple(m for m in chosen.mechanisms if m.naming_threshold() is None)})
    with pytest.raises(WordsNotSelected):
        compile_route(WordSums().terms, bare, cohort_of(bare, FIVE))
    assert issubclass(WordsNotSelected, Unsound)
