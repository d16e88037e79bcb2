"""From an attacker's errors to an epsilon: lower bounds with their confidence, and the bounds of an ideal attacker.

Pure statistics: it draws nothing, knows no mechanism and reads no message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, gammaln, log_ndtr, ndtr, ndtri

from securetm.auditing.record import Curve
from securetm.auditing.verdicts import clopper_pearson
from securetm.contracts import Array
from securetm.data_classes import dataclass

_MOST_EPSILON = 1000.0  # the largest epsilon that is stated; also where no finite epsilon holds


@dataclass(frozen=True)
class ErrorCounts:
    """How often a test said "in" about what was in (`hits` of `present`), and about what was not (`false` of `absent`)."""

    hits: int
    present: int
    false: int
    absent: int

    @property
    def never_wrong(self) -> ErrorCounts:
        return ErrorCounts(self.present, self.present, 0, self.absent)

    def surely(self, confidence: float) -> tuple[float, float]:
        """So many true positives at least, and so many false ones at most: both together, at this confidence."""
        return clopper_pearson(self.hits, self.present, confidence)[0], clopper_pearson(self.false, self.absent, confidence)[1]

    def at_best(self, confidence: float) -> tuple[float, float]:
        """The opposite bounds: an upper one of the true and a lower one of the false positive rate."""
        return clopper_pearson(self.hits, self.present, confidence)[1], clopper_pearson(self.false, self.absent, confidence)[0]

    def smoothed(self) -> tuple[float, float]:
        """Estimates of both rates that are never 0 or 1 (Jeffreys)."""
        return (self.hits + 0.5) / (self.present + 1), (self.false + 0.5) / (self.absent + 1)


# ---- many runs: the direct bound -----------------------------------------------------------------------------------


def log_ratio(true: float, false: float, delta: float) -> float:
    """The least epsilon that allows these rates: true <= e^epsilon false + delta. Nothing else is assumed."""
    if true <= delta:
        return 0.0
    return math.inf if false <= 0 else max(0.0, math.log((true - delta) / false))


def direct_epsilon(errors: ErrorCounts, delta: float, confidence: float) -> float:
    """A lower bound of epsilon, by exact intervals of both rates (Jagielski, Ullman and Oprea 2020)."""
    return log_ratio(*errors.surely(confidence), delta)


# ---- many runs: by the Gaussian trade-off curve ---------------------------------------------------------------------


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of Gaussian noise of deviation 1 on a sum that moves by mu (Balle and Wang 2018)."""
    if mu <= 0 or math.isinf(away := epsilon / mu):
        return 0.0
    first, second = (float(log_ndtr(middle - away)) for middle in (mu / 2, -mu / 2))
    return -math.exp(first) * math.expm1(min(0.0, epsilon + second - first))  # by logarithms: nothing overflows


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of such noise at this delta. At delta 0 no epsilon holds, and the largest is stated."""
    if delta <= 0:
        return _MOST_EPSILON if mu > 0 else 0.0
    return least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, _MOST_EPSILON)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """How far a sum may move at noise of deviation 1 under this epsilon and delta; 0 at delta 0."""
    if delta <= 0:
        return 0.0
    return least(lambda mu: gaussian_delta(mu, epsilon) > delta, 100.0)


def shift(true: float, false: float) -> float:
    """The distance of two normal distributions of deviation 1 if one test has such rates."""
    return float(ndtri(true) - ndtri(false)) if true > false else 0.0


def gaussian_shift(errors: ErrorCounts, confidence: float) -> float:
    """A lower bound of the shift if the noise is Gaussian, so only its size is unknown (Nasr et al. 2023)."""
    return shift(*errors.surely(confidence))


def ideal_direct(runs: int, mu: float, delta: float, confidence: float) -> float:
    """The direct bound of the best test on so many Gaussian sums of each kind, on average."""
    return max(direct_epsilon(_expected(runs, at, mu), delta, confidence) for at in _thresholds(mu))


def ideal_pure(runs: int, epsilon: float, delta: float, confidence: float) -> float:
    """The direct bound of the best test on the worst noise of a pure epsilon, on average."""
    right = math.floor(runs / (1 + math.exp(-epsilon)))
    return direct_epsilon(ErrorCounts(right, runs, runs - right, runs), delta, confidence)


def ideal_gaussian(runs: int, mu: float, delta: float, confidence: float) -> float:
    """The Gaussian bound of the best test on so many Gaussian sums of each kind, on average."""
    return gaussian_epsilon(max(gaussian_shift(_expected(runs, at, mu), confidence) for at in _thresholds(mu)), delta)


def _expected(runs: int, at: float, mu: float) -> ErrorCounts:
    return ErrorCounts(math.floor(runs * ndtr(mu - at)), runs, math.ceil(runs * ndtr(-at)), runs)


def _thresholds(mu: float) -> Array:
    return np.linspace(mu / 2, mu / 2 + 5, 51)


# ---- one run -------------------------------------------------------------------------------------------------------


def one_run_chance(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """The largest probability of so many right guesses under (epsilon, delta) (Steinke, Nasr and Jagielski 2023).

    A fair coin decided about each canary, and there is one guess about each of `guesses` of them. Under pure epsilon the number
    of right guesses is at most binomial with e^epsilon / (1 + e^epsilon). For each canary, delta may raise this tail.
    """
    if correct == 0:
        return 1.0
    right = 1 / (1 + math.exp(-epsilon))
    tail = float(bdtrc(correct - 1, guesses, right))
    below = np.cumsum(_binomial(guesses, epsilon)[correct - 1 :: -1])
    steepest = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * steepest)


def _binomial(tries: int, epsilon: float) -> Array:
    """The binomial probabilities with e^epsilon / (1 + e^epsilon), by logarithms, since this is 1 up to rounding."""
    hits, right = np.arange(tries + 1), -math.log1p(math.exp(-epsilon))
    found: Array = np.exp(_log_choices(tries) + hits * right + hits[::-1] * (right - min(epsilon, 700.0)))
    return found


@lru_cache(maxsize=64)
def _log_choices(tries: int) -> Array:
    hits = np.arange(tries + 1)
    found: Array = gammaln(tries + 1) - gammaln(hits + 1) - gammaln(tries - hits + 1)
    return found


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, confidence: float) -> float:
    """The least epsilon under which so many right guesses are not too unlikely; 0 if chance explains them."""
    doubt = 1 - confidence

    def possible(epsilon: float) -> bool:
        return one_run_chance(canaries, guesses, correct, epsilon, delta) > doubt

    return 0.0 if guesses == 0 else least(possible, 50.0)  # no larger one is stated


def never_wrong_one_run(canaries: int, guesses: int, delta: float, confidence: float) -> float:
    """The bound of an attacker who is never wrong with so many canaries, on so many guesses or on all."""
    return max(one_run_epsilon(canaries, made, made, delta, confidence) for made in (guesses, canaries))


def right_guesses(correct: int, guesses: int, confidence: float) -> tuple[float, float]:
    """The share of right guesses: an estimate, and the upper end of its exact interval."""
    return (correct + 0.5) / (guesses + 1), clopper_pearson(correct, guesses, confidence)[1]


def ideal_correct(canaries: int, guesses: int, mu: float) -> int:
    """How many guesses about the most extreme scores are right on average, if a canary moves its score by mu.

    Half of the guesses are about the highest scores, half about the lowest. By symmetry both halves are right equally often.
    """
    if mu <= 0:
        return guesses // 2
    share = guesses / (2 * canaries)
    at = least(lambda x: (ndtr(-x) + ndtr(mu - x)) / 2 <= share, mu + 40.0, -40.0)
    return math.floor(guesses * float(ndtr(mu - at)) / (2 * share))


def ideal_one_run(canaries: int, epsilon: float, delta: float, confidence: float) -> tuple[int, float]:
    """The best number of guesses, and an ideal attacker's bound for a mechanism of exactly this epsilon.

    It is the bound from the average number of right guesses. With luck the same attacker shows more.
    """
    if canaries < 2:
        return 0, 0.0
    mu = gaussian_mu(epsilon, delta)
    tried = sorted({max(2, 2 * round(canaries * share / 2)) for share in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)})
    bounds = {
        guesses: one_run_epsilon(canaries, guesses, ideal_correct(canaries, guesses, mu), delta, confidence)
        for guesses in tried
        if guesses <= canaries
    }
    best = max(bounds, key=lambda guesses: (bounds[guesses], guesses))  # at high confidence, many guesses show what few cannot
    return best, bounds[best]


# ---- which threshold -----------------------------------------------------------------------------------------------


def errors_at(threshold: float, present: Array, absent: Array) -> ErrorCounts:
    return ErrorCounts(int((present >= threshold).sum()), len(present), int((absent >= threshold).sum()), len(absent))


def best_threshold(present: Array, absent: Array, worth: Callable[[ErrorCounts], float]) -> float:
    """The threshold with the largest worth on these scores. It must be judged on other scores."""
    spread = np.concatenate([np.linspace(0, 0.02, 16), np.linspace(0.02, 0.98, 64), np.linspace(0.98, 1, 32)])
    extremes = np.array([absent.max() + 1e-9, (absent.max() + present.max()) / 2, (absent.max() + np.median(present)) / 2])
    family = np.unique(np.concatenate([np.quantile(present, spread), np.quantile(absent, spread), extremes]))
    return float(max(family, key=lambda threshold: worth(errors_at(threshold, present, absent))))


def least(holds: Callable[[float], bool], high: float, low: float = 0.0) -> float:
    """The least number for which a monotone statement holds; the low end if it always holds."""
    if holds(low):
        return low
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low


def epsilon_curves(
    claimed: float, ideal: Mapping[str, Callable[[float], float]], shown: Mapping[str, float]
) -> tuple[Curve, ...]:
    """Over the claimed epsilon: what ideal attackers would show of honest noise, and what was surely shown."""
    points = tuple(sorted({0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, claimed}))
    lines = (Curve("epsilon", label, points, tuple(map(bound, points))) for label, bound in ideal.items())
    return (*lines, *(Curve("epsilon", label, (claimed,), (low,)) for label, low in shown.items()))
