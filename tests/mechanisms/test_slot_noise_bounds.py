"""Sparse Laplace noise bound by bound: the very numbers the kernel compares with are the law, and keep to epsilon exactly."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import reduce

import numpy as np
import pytest

from securetm.mechanisms.slot_bound_kernels import EVEN_BITS, GAPS, HIGH, LAWS, LOW, MORE_WORDS, PAGE, SIGNS
from securetm.mechanisms.slot_noise import BOUND_BITS, GAP_BITS, LOW_BITS, REACH_BITS, SlotNoise
from tests.mechanisms.slot_laws import LAWS_TRIED

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
        SlotNoise(2, 2.0**-10, 0.2, whole=True),
        SlotNoise(2, 100.0, 0.2, whole=True),
        SlotNoise(2, 8.0, 3.7, whole=True),
        SlotNoise(2, 8.0, 0.2, whole=False),
        SlotNoise(2, 2.0**-10, 0.0, whole=False),
        SlotNoise(2, 100.0, 0.2, whole=False),
        SlotNoise(2, 8.0, 3.7, whole=False),
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
