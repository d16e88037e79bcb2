"""Secret coins: independent, at the stated rate, one for each document or person. What the rate buys is the accountant's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from securetm.contracts import Block, RoundContext, Terms, Unit
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, NoPersons
from securetm.mechanisms.sampling import PoissonSample, _rarely, batch_rows, tossed
from securetm.testing.few_documents import some_documents
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, context

from ..quick_part import quick

ASKS = Terms((Block("gradient", (5,)),), batch=3)
DOCUMENTS = some_documents(4000, seed=1)


class TestPoissonSample(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> PoissonSample:
        return PoissonSample(0.3)


@pytest.mark.parametrize("unit", [Unit.DOCUMENT, Unit.PERSON])
def test_the_terms_say_the_rate_once(unit: Unit) -> None:
    admitted = PoissonSample(0.1).admit(replace(ASKS, unit=unit), COHORT)
    assert (admitted.sampling, admitted.batch) == (0.1, 0)
    assert PoissonSample(0.1).admit(admitted, COHORT) == admitted


@pytest.mark.parametrize("unit", [Unit.WORD, Unit.SENTENCE, Unit.PARTY])
def test_sampling_documents_gives_no_amplification_to_another_unit(unit: Unit) -> None:
    admitted = PoissonSample(0.1).admit(replace(ASKS, unit=unit), COHORT)
    assert (admitted.sampling, admitted.batch) == (1.0, 0)


def test_a_question_for_all_documents_gets_them_all() -> None:
    asks = replace(ASKS, batch=0)
    assert PoissonSample(0.1).admit(asks, COHORT) == asks
    assert PoissonSample(0.1).on_documents(DOCUMENTS, asks, context()) is DOCUMENTS


def test_all_documents_of_a_person_come_together() -> None:
    whose = np.arange(4000) % 800
    taken = PoissonSample(0.25).on_documents(DOCUMENTS.belonging_to(whose), replace(ASKS, unit=Unit.PERSON), context())
    people, documents = np.unique(taken.persons, return_counts=True)
    assert set(documents.tolist()) == {5}
    assert abs(len(people) - 200) < 6.2 * np.sqrt(800 * 0.25 * 0.75)


def test_persons_that_nobody_named_cannot_be_sampled() -> None:
    with pytest.raises(NoPersons):
        PoissonSample(0.5).on_documents(DOCUMENTS, replace(ASKS, unit=Unit.PERSON), context())


def test_nobody_may_be_chosen_and_everybody_is_at_rate_one() -> None:
    assert len(PoissonSample(2.0**-60).on_documents(DOCUMENTS, ASKS, context())) == 0
    assert len(PoissonSample(2.0**-70).on_documents(DOCUMENTS, ASKS, context())) == 0
    assert len(PoissonSample(1.0).on_documents(DOCUMENTS, ASKS, context())) == 4000
    assert len(PoissonSample(0.5).on_documents(some_documents(0, seed=0), ASKS, context())) == 0


class Words:
    """The 64-bit words that it is told to give."""

    def __init__(self, *given: int) -> None:
        self.given = np.array(given, dtype="<u8").tobytes()

    def bytes(self, n: int) -> bytes:
        assert n == len(self.given)
        return self.given


def test_the_coins_are_exact() -> None:
    edge = int(0.3 * 2**64)  # a float is a whole number of 2^-64 here, so this is exact
    here = context()
    drawn = PoissonSample(0.3).on_documents(
        some_documents(4, seed=0), ASKS, RoundContext(COHORT, Words(edge - 1, edge, 0, 2**64 - 1), here.store)
    )
    assert drawn.keys.tolist() == [0, 2]


def test_rare_coins_have_the_law_of_independent_ones() -> None:
    """Every set of three items comes as often as its probability says: 6.2 deviations are exceeded once in 10^9 times."""
    sets = Counter(tuple(_rarely(3, int(0.3 * 2**64), 1, OperatingSystem()).tolist()) for _ in range(4000))
    for number in range(8):
        chosen = tuple(item for item in range(3) if number >> item & 1)
        chance = 0.3 ** len(chosen) * 0.7 ** (3 - len(chosen))
        assert abs(sets[chosen] - 4000 * chance) < 6.2 * np.sqrt(4000 * chance * (1 - chance)), chosen


@pytest.mark.parametrize("items", [2**16 + 1, 2**17, 1_000_003])
def test_few_of_many_are_chosen_as_often_as_the_rate_says(items: int) -> None:
    chosen = tossed(items, int(0.002 * 2**64), OperatingSystem())
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < items
    assert abs(len(chosen) - 0.002 * items) < 6.2 * np.sqrt(0.002 * items)
    assert len(tossed(items, 0, OperatingSystem())) == 0


KEYS = np.random.default_rng(0).integers(0, 2**64, 2**16 + 500, dtype=np.uint64)


@pytest.mark.parametrize("documents", quick([100, 2_000, 2**16 + 500], 100, 2_000))
def test_batches_are_full_and_take_every_document_equally_often(documents: int) -> None:
    keys, batches = KEYS[:documents], 20 * documents // 97
    drawn = [batch_rows(keys, 97, number, seed=3) for number in range(batches)]
    assert {len(np.unique(rows)) for rows in drawn} == {97}
    share, times = 97 / documents, np.bincount(np.concatenate(drawn), minlength=documents)
    assert times.var() < 1.1 * batches * share * (1 - share)  # as often as a fair draw would take them, more or less
    assert not np.array_equal(drawn[0], batch_rows(keys, 97, 0, seed=4))
    assert not np.array_equal(drawn[0], drawn[1])
    assert batch_rows(keys, documents + 1, 0, seed=3).tolist() == list(range(documents))


@pytest.mark.parametrize("documents", [98, 500, 20_000])
def test_a_document_that_goes_changes_a_batch_by_one_other_document(documents: int) -> None:
    keys = KEYS[:documents]
    changed = []
    for gone in (0, documents // 2, documents - 1):
        left = np.delete(keys, gone)
        for number in range(50):
            before, after = keys[batch_rows(keys, 97, number, 3)], left[batch_rows(left, 97, number, 3)]
            changed.append(len(set(before.tolist()) ^ set(after.tolist())))
    assert set(changed) <= {0, 2}
    assert documents < 20_000 or changed.count(0) > 100  # most batches look at other documents


def test_the_order_of_the_documents_plays_no_part() -> None:
    order = np.random.default_rng(1).permutation(500)
    keys = KEYS[:500]
    assert np.array_equal(keys[batch_rows(keys, 97, 5, 3)], keys[order][batch_rows(keys[order], 97, 5, 3)])


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.0001, float("nan")])
def test_a_rate_is_a_probability(rate: float) -> None:
    with pytest.raises(BadSetting):
        PoissonSample(rate)
