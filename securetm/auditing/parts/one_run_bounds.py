"""Bounds that let one run refute an epsilon: by the whole trade-off curve of the claim, and by scores that are Gaussian.

Each bound assumes more than `empirical_epsilon.one_run_epsilon`, and shows more. Pure statistics: it reads no message.

The bound by the curve is that of Mahloujifar, Melis and Chaudhuri (arXiv 2410.22235). Take a guess that is right when `j` are
right in all. With this canary's coin turned, the same guess is wrong, and `j - 1` are right. So the chance of the first is at
most `1 - f(chance of the second)`, where `f` is the trade-off curve of the run: here that of Gaussian noise (Dong et al. 2019).
Guesses may depend on each other. The bound by scores takes them as independent and Gaussian, as Agrawal et al. do (arXiv
2606.12733); it is our own: the shift of a two-sample t statistic.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from securetm.auditing.parts.empirical_epsilon import gaussian_mu, ideal_correct
from securetm.contracts import Array

MOST_SHIFT = 20.0  # the largest shift that is stated: an epsilon of 287 at a delta of 1e-5
_HALVINGS = 40
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)  # of the canaries, to guess about
FAULT = 2.0  # guesses are chosen for an attacker of a run with half of the noise that it claims


# ---- by the trade-off curve ----------------------------------------------------------------------------------------


def curve_refutes(canaries: int, guesses: int, correct: int, mu: float, doubt: float) -> bool:
    """Whether a run under the Gaussian curve of `mu` has so many right guesses, or more, with a chance below `doubt`.

    Suppose that this chance is `doubt`. `right` is the sum of j P(j)/m over numbers of right guesses from `j` on, and `wrong`
    that of (guesses - j) P(j)/m. The curve says how much `wrong` must grow below each `j`. If all probabilities come to more
    than 1, there is no such run.
    """
    from scipy.special import ndtr, ndtri

    if guesses == 0:
        return False
    whole = guesses / canaries
    right, wrong = doubt * correct / canaries, doubt * (guesses - correct) / canaries
    for j in range(correct - 1, -1, -1):
        if right + wrong > whole:
            return True
        least = max(wrong, float(ndtr(ndtri(min(right, 1.0)) - mu)))
        right += (least - wrong) * j / (guesses - j)
        wrong = least
    return right + wrong > whole


def curve_shift(canaries: int, guesses: int, correct: int, confidence: float) -> float:
    """A lower bound of the shift `mu` of a run whose trade-off curve is Gaussian; 0 if chance explains the guesses."""
    doubt = 1 - confidence
    return _last(lambda mu: curve_refutes(canaries, guesses, correct, mu, doubt), MOST_SHIFT)


def likeliest_shift(canaries: int, guesses: int, share: float) -> float:
    """The shift at which an ideal attacker has this share of right guesses, on average."""
    return _last(lambda mu: ideal_correct(canaries, guesses, mu) < share * guesses, MOST_SHIFT)


def ideal_curve(canaries: int, guesses: int, mu: float, confidence: float) -> float:
    """The bound of an ideal attacker of a run of this shift, from its average number of right guesses."""
    return curve_shift(canaries, guesses, ideal_correct(canaries, guesses, mu), confidence)


def best_guesses(canaries: int, epsilon: float, delta: float, confidence: float) -> int:
    """About how many canaries to guess, so that an ideal attacker shows most if the noise is half of what it should be."""
    mu = FAULT * gaussian_mu(epsilon, delta)
    tried = sorted({max(2, 2 * round(canaries * share / 2)) for share in _SHARES})
    possible = [guesses for guesses in tried if guesses <= canaries]
    return max(possible, key=lambda guesses: ideal_curve(canaries, guesses, mu, confidence), default=0)


# ---- by scores that are Gaussian -----------------------------------------------------------------------------------


def score_shift(scores: Array, coins: Array, confidence: float) -> tuple[float, float, float]:
    """An estimate of the shift of the scores of canaries that took part, in deviations, with a lower and an upper bound.

    Each bound holds at this confidence, if the scores are independent and Gaussian with one deviation: then the two-sample t
    statistic is noncentral, with the shift times the root of in * out / all.
    """
    present, absent = scores[coins], scores[~coins]
    both = len(present), len(absent)
    if min(both) < 2:
        return 0.0, 0.0, MOST_SHIFT
    within = float(np.square(present - present.mean()).sum() + np.square(absent - absent.mean()).sum())
    apart, free = float(present.mean() - absent.mean()), sum(both) - 2
    deviation = math.sqrt(within / free)
    shift = apart / deviation if deviation > 0 else math.copysign(math.inf, apart) if apart else 0.0
    root = math.sqrt(both[0] * both[1] / sum(both))
    low, high = (_noncentral(shift * root, free, chance) / root for chance in (confidence, 1 - confidence))
    return min(max(shift, low), max(high, low)), low, max(high, low)


def _noncentral(statistic: float, free: int, chance: float) -> float:
    """The noncentrality, from 0 on, at which such a statistic or a smaller one has this chance. It falls in the chance."""
    from scipy.special import nctdtr

    most = MOST_SHIFT * math.sqrt(free + 2) / 2
    if statistic > 2 * most:
        return most
    return _last(lambda center: nctdtr(free, center, statistic) >= chance, most)


def ideal_scores(canaries: int, mu: float, confidence: float) -> float:
    """The bound of an ideal attacker of a run of this shift by scores, from the average statistic."""
    half, root = canaries // 2, math.sqrt(canaries) / 2
    return _noncentral(mu * root, 2 * half - 2, confidence) / root if half > 1 else 0.0


def _last(holds: Callable[[float], bool], most: float) -> float:
    """The largest number from 0 to `most` for which a statement holds that larger numbers make false; 0 if none."""
    if not holds(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
