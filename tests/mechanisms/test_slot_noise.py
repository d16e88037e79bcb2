"""Sparse Laplace noise on slots: its draws follow the law it states, and are the same noise however they are asked for."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats

from securetm.mechanisms.slot_bound_kernels import GAPS, PAGE, BoundTables
from securetm.mechanisms.slot_noise import ORDER, SlotNoise, keystream, shuffled
from tests.mechanisms.slot_laws import CHANCE, LAWS_TRIED, OTHER, SECRET, dense, misfit

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


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS_TRIED, ids=str)
def test_a_million_counts_follow_the_law(law: SlotNoise) -> None:
    words = np.full(1_000_000, 3, dtype=np.int32)
    table = dense(law, words, OTHER)
    assert misfit(law, np.delete(table, 3, axis=1).ravel(), 0) > CHANCE
    assert misfit(law, table[:, 3], law.steps) > CHANCE
    blank = dense(law, np.full(200_000, -1, dtype=np.int32), OTHER)
    assert misfit(law, blank.ravel(), 0) > CHANCE


@pytest.mark.parametrize("epsilon", [8.0, 0.1])
def test_the_grid_cannot_be_told_from_continuous_noise(epsilon: float) -> None:
    """Kolmogorov and Smirnov: what is above the threshold exceeds it by an exponential variable."""
    law = SlotNoise(40, epsilon, 0.2, whole=False)
    weights = law.draw(SECRET, np.full(50_000, -1, dtype=np.int32), 0)[2]
    assert len(weights) > 150_000
    assert stats.kstest(weights - 0.2, stats.expon(scale=1 / epsilon).cdf).pvalue > CHANCE
    assert stats.kstest(weights - 0.2, stats.expon(scale=0.5 / epsilon).cdf).pvalue < CHANCE


@pytest.mark.parametrize("whole", [True, False])
def test_sparse_is_what_dense_noise_leaves(whole: bool) -> None:
    """Against the naive form: noise on every count from another generator, then the threshold."""
    law, rng, n = SlotNoise(50, 1.0, 1.1, whole), np.random.default_rng(0), 20_000
    noise = rng.geometric(1 - math.exp(-1), (2, n, 50)) if whole else rng.exponential(1.0, (2, n, 50))
    naive = (noise[0] - noise[1]).astype(float)
    naive[:, 7] += 1
    naive[naive <= 1.1] = 0
    ours = dense(law, np.full(n, 7, dtype=np.int32))
    for summary in (lambda table: (table > 0).sum(axis=1), lambda table: table.sum(axis=1), lambda table: table[:, 7]):
        assert stats.ks_2samp(summary(naive), summary(ours)).pvalue > CHANCE


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


def test_the_drawn_likelihoods_stay_within_epsilon() -> None:
    """Seen: the joint counts of two words, of slots with word 0 and of slots without any."""
    law, n = SlotNoise(2, 1.0, 0.2, whole=True), 400_000
    seen = []
    for word, secret in ((0, SECRET), (-1, OTHER)):
        table = np.minimum(dense(law, np.full(n, word, dtype=np.int32), secret), 6).astype(int)
        seen.append(np.bincount(table[:, 0] * 7 + table[:, 1], minlength=49))
    often = (seen[0] > 200) & (seen[1] > 200)
    odds = np.log(seen[0][often] / seen[1][often])
    room = 6 * np.sqrt(1 / seen[0][often] + 1 / seen[1][often])
    assert often.sum() >= 15
    assert (np.abs(odds) <= 1 + room).all()
    assert odds.max() > 0.9


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


@pytest.mark.parametrize("law", LAWS_TRIED, ids=str)
def test_no_other_count_depends_on_the_word(law: SlotNoise) -> None:
    """In twenty thousand slots, rare draws among them: the theorem says that other words' noise is independent of the word."""
    with_word, without = (dense(law, np.full(20_000, word, dtype=np.int32)) for word in (3, -1))
    np.testing.assert_array_equal(np.delete(with_word, 3, axis=1), np.delete(without, 3, axis=1))
    assert (with_word[:, 3] != without[:, 3]).any()


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
