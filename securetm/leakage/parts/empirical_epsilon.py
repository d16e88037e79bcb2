"""From an attacker's errors to an epsilon that he has shown: lower bounds with their confidence, and what an ideal one reaches.

Pure statistics: it draws nothing, knows no mechanism and reads no message.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from securetm.contracts import Array
from securetm.leakage.intervals import clopper_pearson

_MOST_EPSILON = 1000.0  # no more is ever stated, of a Gaussian law or where there is no epsilon at all
_MOST_OF_ONE_RUN = 50.0
_HALVINGS = 50


@dataclass(frozen=True)
class ErrorCounts:
    """How often a test said "in" of what was in (`hits`) and of what was not (`false`)."""

    hits: int
    present: int
    false: int
    absent: int

    @property
    def never_wrong(self) -> ErrorCounts:
        """The counts of an attacker who is always right on as many sums."""
        return ErrorCounts(self.present, self.present, 0, self.absent)

    def surely(self, confidence: float) -> tuple[float, float]:
        """So many true positives at least, and so many false ones at most: both together, at this confidence."""
        return clopper_pearson(self.hits, self.present, confidence)[0], clopper_pearson(self.false, self.absent, confidence)[1]

    def at_best(self, confidence: float) -> tuple[float, float]:
        """The other ends: so many true positives at most, and so many false ones at least."""
        return clopper_pearson(self.hits, self.present, confidence)[1], clopper_pearson(self.false, self.absent, confidence)[0]

    def smoothed(self) -> tuple[float, float]:
        """Both shares as a middle estimate that is never 0 or 1 (Jeffreys)."""
        return (self.hits + 0.5) / (self.present + 1), (self.false + 0.5) / (self.absent + 1)


# ---- many runs: the direct bound -----------------------------------------------------------------------------------


def log_ratio(true: float, false: float, delta: float) -> float:
    """The least epsilon under which such shares are possible: true <= e^epsilon false + delta. Nothing else is assumed."""
    if true <= delta:
        return 0.0
    return math.inf if false <= 0 else max(0.0, math.log((true - delta) / false))


def direct_epsilon(errors: ErrorCounts, delta: float, confidence: float) -> float:
    """The epsilon that is surely shown, by exact intervals of both shares (Jagielski, Ullman and Oprea 2020)."""
    return log_ratio(*errors.surely(confidence), delta)


# ---- many runs: by the Gaussian trade-off curve ---------------------------------------------------------------------


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of Gaussian noise of deviation 1 on a sum that moves by mu (Balle and Wang 2018)."""
    from scipy.special import log_ndtr

    if mu <= 0 or math.isinf(away := epsilon / mu):
        return 0.0
    first, second = (float(log_ndtr(middle - away)) for middle in (mu / 2, -mu / 2))
    return -math.exp(first) * math.expm1(min(0.0, epsilon + second - first))  # by logarithms: nothing overflows


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of such noise at this delta. At delta 0 it has none: whatever moves the sum, the most is stated."""
    if delta <= 0:
        return _MOST_EPSILON if mu > 0 else 0.0
    return _least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, _MOST_EPSILON)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """How far a sum may move at noise of deviation 1 under this epsilon and delta: at delta 0 not at all."""
    if delta <= 0:
        return 0.0
    return _least(lambda mu: gaussian_delta(mu, epsilon) > delta, 100.0)


def shift(true: float, false: float) -> float:
    """How far apart two normal laws of deviation 1 lie if one test has such shares."""
    from scipy.special import ndtri

    return float(ndtri(true) - ndtri(false)) if true > false else 0.0


def gaussian_shift(errors: ErrorCounts, confidence: float) -> float:
    """The shift that is surely shown if the noise is Gaussian: only its size is then in question (Nasr et al. 2023)."""
    return shift(*errors.surely(confidence))


def ideal_direct(runs: int, mu: float, delta: float, confidence: float) -> float:
    """The direct bound that the best test would reach on so many Gaussian sums of each kind, on average."""
    return max(direct_epsilon(_expected(runs, at, mu), delta, confidence) for at in _thresholds(mu))


def ideal_pure(runs: int, epsilon: float, delta: float, confidence: float) -> float:
    """The direct bound that the best test would reach on the noise that shows most under a pure epsilon."""
    right = math.floor(runs / (1 + math.exp(-epsilon)))
    return direct_epsilon(ErrorCounts(right, runs, runs - right, runs), delta, confidence)


def ideal_gaussian(runs: int, mu: float, delta: float, confidence: float) -> float:
    """The same by the Gaussian curve."""
    return gaussian_epsilon(max(gaussian_shift(_expected(runs, at, mu), confidence) for at in _thresholds(mu)), delta)


def _expected(runs: int, at: float, mu: float) -> ErrorCounts:
    from scipy.special import ndtr

    return ErrorCounts(math.floor(runs * ndtr(mu - at)), runs, math.ceil(runs * ndtr(-at)), runs)


def _thresholds(mu: float) -> Array:
    return np.linspace(mu / 2, mu / 2 + 5, 51)


# ---- one run -------------------------------------------------------------------------------------------------------


def one_run_chance(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """How likely, at most, an (epsilon, delta) mechanism lets so many guesses be right (Steinke, Nasr and Jagielski 2023).

    Every canary was in with a fair coin of its own, and one guess about each of `guesses` of them. Under pure epsilon the right
    ones are at most a binomial of e^epsilon / (1 + e^epsilon); delta adds, for each canary, what it may move that tail by.
    """
    from scipy.special import bdtrc

    if correct == 0:
        return 1.0
    right = 1 / (1 + math.exp(-epsilon))
    tail = float(bdtrc(correct - 1, guesses, right))
    below = np.cumsum(_binomial(guesses, epsilon)[correct - 1 :: -1])
    steepest = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * steepest)


def _binomial(tries: int, epsilon: float) -> Array:
    """The chances of 0, 1, ... successes of e^epsilon / (1 + e^epsilon): by logarithms, for it may be 1 but for rounding."""
    hits, right = np.arange(tries + 1), -math.log1p(math.exp(-epsilon))
    found: Array = np.exp(_log_choices(tries) + hits * right + hits[::-1] * (right - min(epsilon, 700.0)))
    return found


@lru_cache(maxsize=64)
def _log_choices(tries: int) -> Array:
    from scipy.special import gammaln

    hits = np.arange(tries + 1)
    found: Array = gammaln(tries + 1) - gammaln(hits + 1) - gammaln(tries - hits + 1)
    return found


def one_run_epsilon(canaries: int, guesses: int, correct: int, delta: float, confidence: float) -> float:
    """The least epsilon that does not make so many right guesses too surprising; 0 where chance alone would do."""
    doubt = 1 - confidence

    def possible(epsilon: float) -> bool:
        return one_run_chance(canaries, guesses, correct, epsilon, delta) > doubt

    return 0.0 if guesses == 0 else _least(possible, _MOST_OF_ONE_RUN)


def never_wrong_one_run(canaries: int, guesses: int, delta: float, confidence: float) -> float:
    """The most that anybody shows with so many canaries: of an attacker who is never wrong, on these guesses or on all."""
    return max(one_run_epsilon(canaries, made, made, delta, confidence) for made in (guesses, canaries))


def right_guesses(correct: int, guesses: int, confidence: float) -> tuple[float, float]:
    """The share of guesses that are right: a middle estimate, and the upper end of its exact interval."""
    return (correct + 0.5) / (guesses + 1), clopper_pearson(correct, guesses, confidence)[1]


def ideal_correct(canaries: int, guesses: int, mu: float) -> int:
    """How many of the surest guesses are right, on average, where Gaussian noise moves each canary's score by mu.

    Half of the guesses are the highest scores, half the lowest; by symmetry both halves are right equally often.
    """
    from scipy.special import ndtr

    if mu <= 0:
        return guesses // 2
    share = guesses / (2 * canaries)
    at = _least(lambda x: (ndtr(-x) + ndtr(mu - x)) / 2 <= share, mu + 40.0, -40.0)
    return math.floor(guesses * float(ndtr(mu - at)) / (2 * share))


def ideal_one_run(canaries: int, epsilon: float, delta: float, confidence: float) -> tuple[int, float]:
    """How many guesses are best, and what an ideal attacker then shows of a mechanism of exactly this epsilon, on average.

    That is the bound from as many right guesses as he has on average: with luck, the same attacker shows more.
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
    best = max(bounds, key=lambda guesses: (bounds[guesses], guesses))  # with little doubt, many guesses show what few cannot
    return best, bounds[best]


# ---- which threshold -----------------------------------------------------------------------------------------------


def errors_at(threshold: float, present: Array, absent: Array) -> ErrorCounts:
    """A test that says "in" from this score on."""
    return ErrorCounts(int((present >= threshold).sum()), len(present), int((absent >= threshold).sum()), len(absent))


def best_threshold(present: Array, absent: Array, worth: Callable[[ErrorCounts], float], tried: int = 64) -> float:
    """The threshold that shows most on these scores. What it then shows on others is free of having been chosen."""
    spread = np.concatenate(
        [np.linspace(0, 0.02, tried // 4), np.linspace(0.02, 0.98, tried), np.linspace(0.98, 1, tried // 2)]
    )
    extremes = np.array([absent.max() + 1e-9, (absent.max() + present.max()) / 2, (absent.max() + np.median(present)) / 2])
    family = np.unique(np.concatenate([np.quantile(present, spread), np.quantile(absent, spread), extremes]))
    return float(max(family, key=lambda threshold: worth(errors_at(threshold, present, absent))))


def _least(holds: Callable[[float], bool], high: float, low: float = 0.0) -> float:
    """Where a statement that holds from some number on begins to hold; the low end where it always does."""
    if holds(low):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low
