"""The paired bootstrap: a difference in every document is sure, and one of luck is not."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.quality.evaluation import RESAMPLES, paired_difference


def test_a_difference_in_every_document_is_sure_and_as_large() -> None:
    words = np.array([10.0, 20.0, 30.0] * 20)
    other = -7.0 * words
    found = paired_difference(other + 0.5 * words, other, words)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.sure
    assert found.chance == pytest.approx(2 / (RESAMPLES + 1))


def test_luck_is_not_sure_and_the_interval_holds_its_width() -> None:
    apart = np.tile([1.0, -1.0], 200)
    found = paired_difference(apart, np.zeros(400), np.ones(400))
    assert found.value == 0
    assert not found.sure
    assert found.chance > 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.1)  # the normal interval of a mean of 400


def test_pairs_cancel_what_both_have_in_common() -> None:
    rng = np.random.default_rng(0)
    hard = 100 * rng.normal(size=300)
    assert paired_difference(hard + 0.1 + 0.01 * rng.normal(size=300), hard, np.ones(300)).sure


def test_the_same_seed_gives_the_same_numbers_and_no_words_give_none() -> None:
    rng = np.random.default_rng(0)
    mine, other, words = rng.normal(size=50), rng.normal(size=50), np.full(50, 3.0)
    assert paired_difference(mine, other, words, 1) == paired_difference(mine, other, words, 1)
    assert np.isnan(paired_difference(mine, other, np.zeros(50)).value)
    assert not paired_difference(np.full(50, -np.inf), other, words).sure
