"""Words of one document alone are not named, and words of many are. The true count of a word is never shown."""

from __future__ import annotations

from dataclasses import replace
from math import erfc, sqrt
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import INF, Mechanism, Noised, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, NeedsIntegers
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.mechanisms.laplace_noise import DiscreteLaplaceNoise
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.quantising import FixedPoint
from securetm.mechanisms.word_selection import WordSelection
from securetm.models.questions.word_sketch import WordSketch
from securetm.testing.mechanism_laws import COHORT, InTurn, MechanismLaws, context
from securetm.testing.stated_noise import CHANCE
from tests.mechanisms.noisy import BOUNDED, COUNTS, REAL

NAMES = replace(COUNTS, names_words=True, data_only=True)
SELECTION = WordSelection(words_per_document=5, noise_multiplier=2.0, miss=0.01)


class TestWordSelectionOfOtherQuestions(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return SELECTION

    @pytest.fixture
    def before(self) -> Terms:
        return BOUNDED


@pytest.mark.parametrize(
    ("asked", "protected"), [(Unit.DOCUMENT, Unit.DOCUMENT), (Unit.PARTY, Unit.DOCUMENT), (Unit.PERSON, Unit.PERSON)]
)
def test_the_terms_say_that_nothing_private_is_left(asked: Unit, protected: Unit) -> None:
    admitted = SELECTION.admit(replace(NAMES, unit=asked), COHORT)
    assert (admitted.names_words, admitted.noised, admitted.unit) == (False, Noised.WHOLE, protected)
    assert admitted.l1 == admitted.l2 == admitted.linf == INF
    assert admitted.deviation == pytest.approx(sqrt(2.0**2 * 5 + 1 / 12), rel=1e-6)
    assert SELECTION.event(admitted, COHORT) == GaussianDpEvent(2.0)
    assert 0.01 <= SELECTION.failure_probability(admitted, COHORT) < 0.01 + 1e-15


@pytest.mark.parametrize("terms", [REAL, COUNTS, BOUNDED, replace(BOUNDED, noised=Noised.WHOLE)])
def test_other_questions_pass(terms: Terms) -> None:
    rows, sums = np.full((2, 11), 3), np.arange(11)
    assert SELECTION.admit(terms, COHORT) == terms
    assert SELECTION.on_rows(rows, terms) is rows
    assert SELECTION.on_named(sums, terms, context()) is sums


def test_a_quarter_of_the_budget_is_twice_the_noise() -> None:
    assert SELECTION.admit(replace(COUNTS, counts_words=True, part=0.25), COHORT).multiplier == 2 * 2.0


def test_words_are_counted_in_whole_numbers() -> None:
    with pytest.raises(NeedsIntegers):
        SELECTION.admit(replace(REAL, names_words=True), COHORT)


def test_only_one_part_of_a_profile_spends_on_the_words() -> None:
    others: list[Any] = [Clip(1.0), BoundedCounts(3), FixedPoint(), GaussianNoise(1.0)]
    others += [NoiseShares(1.0), CentralNoise(1.0), DiscreteLaplaceNoise(1.0)]
    steps = InTurn((SELECTION, *others)).route(NAMES).steps
    spent = [type(step.mechanism).__name__ for step in steps if step.event is not None]
    assert spent == ["WordSelection"]
    named, here = np.arange(11), context()
    for step in steps:
        np.testing.assert_array_equal(step.mechanism.on_vector(named, step.after, here), named)


def test_a_document_counts_for_so_many_words_once_each() -> None:
    rows = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (50, 30)))
    kept = SELECTION.on_rows(rows, NAMES).toarray()
    assert kept.max() == 1
    np.testing.assert_array_equal(kept.sum(axis=1), np.minimum((rows.toarray() > 0).sum(axis=1), 5))


@pytest.mark.parametrize(("words", "noise", "miss"), [(1, 0.3, 0.4), (5, 2.0, 0.01), (50, 8.0, 1e-7), (400, 1.0, 1e-12)])
def test_the_threshold_is_the_smallest_that_keeps_the_promise(words: int, noise: float, miss: float) -> None:
    selection = WordSelection(words, noise, miss)

    def through(threshold: int) -> float:
        return words * erfc((threshold - 0.5) / (noise * sqrt(words) * sqrt(2))) / 2

    assert through(selection.threshold) <= miss
    assert selection.threshold == 1 or through(selection.threshold - 1) > miss


def test_a_document_alone_is_named_as_rarely_as_promised_and_no_rarer_than_needed() -> None:
    trials = 40_000
    sums = SELECTION.on_named(np.ones(5 * trials, dtype=np.int64), NAMES, context())  # 5 words of one document, many times
    missed = (sums.reshape(trials, 5) > 0).any(axis=1).mean()
    room = np.sqrt(3 * 0.01 * np.log(2 / CHANCE) / trials)  # Chernoff
    assert missed <= 0.01 + room
    assert missed > 0.004


@pytest.mark.parametrize("unit", [Unit.DOCUMENT, Unit.PERSON])
def test_through_the_door_a_person_counts_once_for_all_documents(unit: Unit) -> None:
    asked = replace(NAMES, unit=unit)
    whose = np.arange(3000) // 300  # ten persons, and each says the same three words in each of 300 documents
    rows = sparse.csr_array(np.tile([4, 1, 0, 2], (3000, 1)))
    clipped_sum = ClippedRowSum(
        asked,
        on_rows=lambda poured: SELECTION.on_rows(poured, asked),
        persons=whose,
    )
    named = SELECTION.on_named(clipped_sum.named(rows, np.arange(3000), np.arange(4)), asked, context())
    truth = 10 if unit is Unit.PERSON else 3000
    assert named[2] == 0
    assert (np.abs(named[[0, 1, 3]] - truth) < 7 * sqrt(20)).all() or unit is Unit.PERSON
    assert (named < truth + 7 * sqrt(20)).all()


def test_one_document_more_moves_no_other_documents_words() -> None:
    """It brings words that come first in the alphabet, so that every other word of its party stands in another column."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{n}" for n in rng.choice(2000, 60, replace=False)) for _ in range(200)]
    before, after = (_bounded_sums(Corpus.from_strings(some, name="party")) for some in (texts, [*texts, "aaa aab aac word7"]))
    moved = {word: after[word] - before.get(word, 0) for word in after if after[word] != before.get(word, 0)}
    assert before.keys() <= after.keys()
    assert moved == {"aaa": 1, "aab": 1, "aac": 1, "word7": 1}


def _bounded_sums(corpus: Corpus) -> dict[str, int]:
    """What is counted of each word before any noise, as the question about words pours it."""
    sketch = WordSketch(3000, counted=False)
    clipped_sum = ClippedRowSum(sketch.terms, on_rows=lambda rows: SELECTION.on_rows(rows, sketch.terms))
    return dict(zip(corpus.vocabulary, clipped_sum.named(*sketch.own_words(corpus)).tolist(), strict=True))


def test_of_two_words_with_one_number_only_the_first_is_counted() -> None:
    clipped_sum = ClippedRowSum(NAMES)
    assert clipped_sum.named(np.array([[1, 1, 1], [0, 1, 0]]), np.arange(2), np.array([9, 9, 4])).tolist() == [3, 0, 1]


def test_words_of_many_documents_are_named_with_noise() -> None:
    truth = np.full(4000, 200)
    named = SELECTION.on_named(truth, NAMES, context())
    assert (named > SELECTION.threshold).all()
    assert abs((named - truth).std() / sqrt(20) - 1) < 0.1
    assert np.any(named != SELECTION.on_named(truth, NAMES, context()))


def test_a_word_that_nobody_uses_is_never_named() -> None:
    loose = WordSelection(5, 30.0, 0.4)
    named = loose.on_named(np.tile([0, 300], 5000), NAMES, context())
    assert not named[::2].any()
    assert (named >= 0).all()


@pytest.mark.parametrize("settings", [(0, 1.0, 0.1), (5, 0.0, 0.1), (5, 1.0, 0.0), (5, 1.0, 0.5), (5, 1.0, float("nan"))])
def test_settings_are_checked(settings: tuple[Any, ...]) -> None:
    with pytest.raises(BadSetting):
        WordSelection(*settings)


def test_a_party_with_one_document_names_none_of_its_words() -> None:
    """The whole route: what the party would send holds no more than if the document had no word."""
    corpus, sketch = (
        Corpus.from_strings(["aaa aab aac", "aaa"], name="party").select(np.array([0])),
        WordSketch(300, counted=False),
    )
    unnamed = sketch.row(corpus.vocabulary, np.zeros(len(corpus.vocabulary), dtype=np.int64), 1)
    sent = InTurn((SELECTION,)).route(sketch.terms).answer(sketch, corpus.in_blocks(), context(), {}, np.random.default_rng(0))
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in sent.vector.values()]), np.ravel(unnamed))
