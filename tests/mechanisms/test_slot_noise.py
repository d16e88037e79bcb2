"""Sparse Laplace noise on slots: its draws follow the law it states, bound by bound, however they are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import reduce
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from securetm.mechanisms.slot_noise import (
    BOUND_BITS,
    EVEN_BITS,
    GAP_BITS,
    GAPS,
    HIGH,
    LAWS,
    LOW,
    LOW_BITS,
    MORE_WORDS,
    ORDER,
    PAGE,
    REACH_BITS,
    SIGNS,
    BoundTables,
    SlotNoise,
    keystream,
    shuffled,
)

from .slot_laws import CHANCE, LAWS_TRIED, OTHER, SECRET, dense, misfit

# ---- the law -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS_TRIED, ids=str)
def test_counts_follow_the_law_and_half_the_noise_does_not(law: SlotNoise) -> None:
    words = np.full(20_000, 3, dtype=np.int32)
    table = dense(law, words)
    others = np.delete(table, 3, axis=1).ravel()
    assert misfit(law, others, 0) > CHANCE
    assert misfit(law, table[:, 3], law.steps) > CHANCE
    half = dense(SlotNoise(law.size, 2 * law.epsilon, law.threshold, law.whole), np.full(150_000, 3, dtype=np.int32))
    assert misfit(law, half[:, 3], law.steps) < CHANCE


@pytest.mark.parametrize("whole", [True, False])
def test_which_counts_are_left_is_independent_and_even(whole: bool) -> None:
    law, n = SlotNoise(40, 1.0, 0.5, whole), 40_000
    left = dense(law, np.full(n, -1, dtype=np.int32)) > 0
    assert stats.chisquare(left.sum(axis=0)).pvalue > CHANCE
    found = np.bincount(left.sum(axis=1), minlength=41)
    wanted = stats.binom(40, law.chance).pmf(np.arange(41)) * n
    kept = wanted >= 5
    assert stats.chisquare(found[kept], wanted[kept] * found[kept].sum() / wanted[kept].sum()).pvalue > CHANCE
    both = (left[:, 1:] & left[:, :-1]).mean(axis=0)  # neighbours: within 6 standard errors of independence
    assert np.abs(both - law.chance**2).max() < 6 * law.chance / math.sqrt(n)
    assert np.abs(np.corrcoef(left[:-1, 5], left[1:, 5])[0, 1]) < 6 / math.sqrt(n)


# ---- the same noise however it is asked for ----------------------------------------------------------------------------


class Cramped(SlotNoise):
    """A law whose stretches of the keystream are too short for most slots, so that they go on further up."""

    stretch = (80, 160, 240)  # type: ignore[assignment]


@pytest.mark.parametrize(
    "law", [*LAWS_TRIED[1::2], SlotNoise(5000, 8.0, 0.2, whole=False), Cramped(500, 1.0, 0.2, whole=False)], ids=str
)
def test_pieces_are_the_whole(law: SlotNoise) -> None:
    words = np.random.default_rng(1).integers(-1, law.size, 300).astype(np.int32)
    table = dense(law, words)
    cuts = [0, 1, 2, 66, 67, 200, 300]
    parts = [dense(law, words[a:b], first=a) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.vstack(parts), table)
    np.testing.assert_array_equal(dense(law, words), table)
    assert (dense(law, words, OTHER) != table).any()
    assert (dense(law, words, first=1) != table).any()


def test_slots_that_go_on_further_up_follow_the_law_too() -> None:
    law = Cramped(60, 1.0, 0.2, whole=False)
    table = dense(law, np.full(2000, -1, dtype=np.int32))
    assert (table > 0).sum(axis=1).min() > 0
    assert misfit(law, table.ravel(), 0) > CHANCE


def test_long_gaps_are_drawn_in_parts() -> None:
    """Where noise leaves many counts, a gap of all the words is too unlikely to be drawn at once."""
    law = SlotNoise(400, 0.01, 0.2, whole=True)
    assert law.bounds(GAPS) < 45
    book = law.ladders.book.copy()
    book[GAPS * PAGE : (GAPS + 1) * PAGE] = np.minimum(book[GAPS * PAGE : (GAPS + 1) * PAGE], book[GAPS * PAGE] + np.uint64(2))
    short = SlotNoise(400, 0.01, 0.2, whole=True)  # gaps of 2 already are drawn in parts: the law must be the same
    sure = law.ladders.sure.copy()
    sure[GAPS][sure[GAPS] >= 2] = -1
    vars(short)["ladders"] = BoundTables(sure, book)
    assert short.bounds(GAPS) == 2
    for one in (law, short):
        table = dense(one, np.full(3000, 7, dtype=np.int32))
        assert misfit(law, np.delete(table, 7, axis=1).ravel(), 0) > CHANCE
        assert misfit(law, table[:, 7], 1) > CHANCE


@pytest.mark.parametrize("whole", [True, False])
def test_a_word_moves_nothing_but_its_own_counts(whole: bool) -> None:
    """Given the secret, other slots keep theirs, and so does every other count of this slot."""
    law = SlotNoise(30, 0.7, 0.2, whole)
    words = np.arange(30, dtype=np.int32)
    changed = words.copy()
    changed[12], changed[20] = 3, -1
    before, after = dense(law, words), dense(law, changed)
    same = np.ones(before.shape, dtype=bool)
    same[12, [12, 3]] = same[20, 20] = False
    np.testing.assert_array_equal(before[same], after[same])
    assert (before != after).any()


def test_words_rise_in_every_slot() -> None:
    """An order of its own would say which word was there."""
    for law in (SlotNoise(50, 0.5, 0.2, whole=True), SlotNoise(50, 0.5, 0.2, whole=False)):
        ends, ids, _ = law.draw(SECRET, np.full(500, 20, dtype=np.int32), 0)
        assert all((np.diff(ids[a:b]) > 0).all() for a, b in pairwise(ends))


def test_a_fixed_secret_gives_these_numbers() -> None:
    """A vector for other implementations: bytes 0, 1, ..., 31, slots 0, 1 and 2 with words 5, 0 and none."""
    words = np.array([5, 0, -1], dtype=np.int32)
    ends, ids, weights = SlotNoise(8, 1.0, 0.2, whole=True).draw(SECRET, words, 0)
    assert (ends.tolist(), ids.tolist(), weights.tolist()) == VECTOR_WHOLE
    ends, ids, weights = SlotNoise(8, 8.0, 0.2, whole=False).draw(SECRET, words, 0)
    assert (ends.tolist(), ids.tolist(), (weights * 2**18).tolist()) == VECTOR_FINE


VECTOR_WHOLE = ([0, 3, 5, 7], [2, 5, 6, 1, 2, 1, 2], [3.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0])
VECTOR_FINE = ([0, 2, 5, 7], [5, 7, 0, 5, 6, 4, 6], [249085.0, 89992.0, 279801.0, 82167.0, 61981.0, 98983.0, 111710.0])


# ---- edges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("epsilon", [2.0**-10, 100.0])
@pytest.mark.parametrize("threshold", [0.0, 40.0])
@pytest.mark.parametrize("size", [0, 3])
def test_extreme_settings(size: int, threshold: float, epsilon: float, whole: bool) -> None:
    law = SlotNoise(size, epsilon, threshold, whole)
    ends, ids, weights = law.draw(SECRET, np.arange(size, dtype=np.int32).repeat(3), 7)
    assert len(ends) == 3 * size + 1
    assert ends[-1] == len(ids) == len(weights)
    assert (weights > threshold).all()
    assert (weights * law.steps == np.rint(weights * law.steps)).all()
    assert (weights <= law.most / law.steps).all()
    assert 0 <= law.deviation < 2000


# ---- order -----------------------------------------------------------------------------------------------------------


def test_every_order_is_equally_likely() -> None:
    words, ends = np.tile(np.arange(4, dtype=np.int32), 30_000), np.arange(1, 30_001) * 4
    orders = shuffled(SECRET, words, ends).reshape(-1, 4)
    names = {order: i for i, order in enumerate(permutations(range(4)))}
    found = np.bincount([names[tuple(row)] for row in orders.tolist()], minlength=24)
    assert stats.chisquare(found).pvalue > CHANCE
    np.testing.assert_array_equal(orders.ravel(), shuffled(SECRET, words, ends))


def test_uses_of_the_secret_do_not_meet() -> None:
    assert keystream(SECRET, ORDER, 64) != keystream(SECRET, 0, 64)
    assert keystream(SECRET, 1, 16) == keystream(SECRET, 0, 32)[16:]


# ---- bound by bound --------------------------------------------------------------------------------------------------------


PRECISE = 150  # decimal digits


def bounds_of(law: SlotNoise, one: int) -> list[Decimal]:
    """The cumulative chances that the kernel really compares with."""
    book = law.ladders.book
    more = (len(book) - LAWS * PAGE) // MORE_WORDS
    guide = book[one * PAGE : (one + 1) * PAGE].astype(np.int64)
    cells = np.repeat(np.arange(PAGE - 1), np.diff(guide))
    found = []
    for place, cell in enumerate(cells.tolist(), int(guide[0])):
        words = [int(book[place + i * more]) for i in range(MORE_WORDS)]
        whole = reduce(lambda high, word: (high << 64) + word, words, cell)
        found.append(Decimal(whole) / (1 << BOUND_BITS))
    return found


def ratio_of(law: SlotNoise) -> Decimal:
    return (-Decimal(law.rate.numerator) / Decimal(law.rate.denominator)).exp()


@pytest.mark.parametrize(
    "law", [*LAWS_TRIED, SlotNoise(300, 50.0, 1.5, whole=True), SlotNoise(300, 50.0, 0.2, whole=False)], ids=str
)
def test_every_bound_is_the_law_to_the_last_bit(law: SlotNoise) -> None:
    with localcontext(prec=PRECISE):
        near = Decimal(2) ** (1 - BOUND_BITS)
        ratio = ratio_of(law)
        above = ratio**law.least / (1 + ratio)
        bits = 0 if law.whole else LOW_BITS
        gaps, high, low, signs = (bounds_of(law, one) for one in (GAPS, HIGH, LOW, SIGNS))
        assert len(gaps) == law.size or (1 - above) ** len(gaps) > Decimal(2) ** -GAP_BITS > (1 - above) ** (len(gaps) + 1)
        assert ratio ** (len(high) << bits) > Decimal(2) ** -REACH_BITS > ratio ** ((len(high) + 1) << bits)
        assert all(abs(one - (1 - (1 - above) ** (i + 1))) < near for i, one in enumerate(gaps))
        assert all(abs(one - (1 - ratio ** ((i + 1) << bits))) < near for i, one in enumerate(high))
        assert abs(signs[0] - ratio / (1 + ratio)) < near
        assert len(low) == (1 << bits) - 1
        assert low == sorted(low)
        wanted = [(1 - ratio ** (i + 1)) / (1 - ratio ** (1 << bits)) for i in range(len(low))]
        assert all(abs(one - other) < near for one, other in zip(mixed(low), wanted, strict=True))


def mixed(low: list[Decimal]) -> list[Decimal]:
    """Last bits: even chances mostly, and now and then from their ladder."""
    fine = Decimal(1) / (1 << EVEN_BITS)
    return [(1 - fine) * (i + 1) / (len(low) + 1) + fine * one for i, one in enumerate(low)]


def reaching(law: SlotNoise) -> Callable[[int], Decimal]:
    """The chance, as it is really drawn, that noise is at least so many steps above the least."""
    high, low = [Decimal(0), *bounds_of(law, HIGH), Decimal(1)], [Decimal(0), *mixed(bounds_of(law, LOW)), Decimal(1)]
    bits = 0 if law.whole else LOW_BITS

    def at(far: int) -> Decimal:
        block, rest = max(far, 0) >> bits, max(far, 0) & ((1 << bits) - 1)
        if block >= len(high) - 1:
            return Decimal(0)
        return (1 - high[block + 1]) + (high[block + 1] - high[block]) * (1 - low[rest])

    return at


@pytest.mark.parametrize(
    "law",
    [
        SlotNoise(2, 1.0, 0.2, whole=True),
        SlotNoise(2, 8.0, 3.7, whole=True),
        SlotNoise(2, 8.0, 0.2, whole=False),
        *(
            pytest.param(SlotNoise(2, *law), marks=pytest.mark.slow)
            for law in (
                (2.0**-10, 0.2, True),
                (100.0, 0.2, True),
                (2.0**-10, 0.0, False),
                (100.0, 0.2, False),
                (8.0, 3.7, False),
            )
        ),
    ],
    ids=str,
)
def test_what_is_drawn_keeps_to_epsilon_with_nothing_left_over(law: SlotNoise) -> None:
    """From the very bounds that the kernel compares with: every outcome for two words, with word 0 there and without it.

    Without: gaps decide which of the two are left, and how far above the least they are. With: word 0 has its own noise, and
    what the gaps say of it counts for nothing. Nothing is drawn to more than `most`, where all that lies beyond is put.
    """
    with localcontext(prec=PRECISE):
        reach, negative = reaching(law), bounds_of(law, SIGNS)[0]
        first, second = bounds_of(law, GAPS)
        gaps = [first, second - first, 1 - second]
        left = {(0, 0): gaps[2], (1, 0): gaps[0] * (1 - gaps[0]), (0, 1): gaps[1], (1, 1): gaps[0] ** 2}

        def own(k: int) -> Decimal:
            """P(1 + noise >= k)."""
            below = 1 - reach(law.steps - k) if law.steps - k >= 0 else Decimal(0)
            return (1 - negative) * reach(k - law.steps) + negative * below

        edges = {law.least, law.steps - 1, law.steps, law.steps + 1, law.most - 1, law.most}
        tried = sorted(
            {*edges, *np.linspace(law.least, law.most, 400).astype(int).tolist()} & set(range(law.least, law.most + 1))
        )
        for other in (0, 1):
            without, with_word = left[1, other], left[0, other] + left[1, other]
            odds = [(1 - own(law.least)) * with_word / left[0, other]]
            for k in tried:
                end = k == law.most
                there = own(k) - (0 if end else own(k + 1))
                noise = reach(k - law.least) - (0 if end else reach(k + 1 - law.least))
                odds.append(there * with_word / (noise * without))
            assert max(map(abs, (one.ln() for one in odds))) <= Decimal(law.epsilon)
            assert max(one.ln() for one in odds) > Decimal(law.epsilon) * Decimal("0.99999")
