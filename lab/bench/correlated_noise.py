"""What noise that is correlated over rounds could buy, at the same epsilon. It trains nothing and draws nothing.

Two cases, as `protocols/correlated_noise.md` proves and explains them. Where a document takes part in every round, no
correlation is better than independent noise of the right size for each round. Where batches go round in a public order, banded
noise stands beside independent noise of secret samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from lab.measuring import OnProgress, Row, beside, record, told
from securetm.accounting.calibration import noise_for
from securetm.accounting.spends import Spend
from securetm.contracts import Array

DELTA = 1e-5
ROUNDS = (2, 3, 5, 8, 20)
FORGETTING = (0.3, 0.5)
SAMPLED = ((0.05, 200), (0.1, 200), (0.2, 50))  # the shipped rate, that of `reproduce privacy-utility`, and a large one
EPSILONS = (1.0, 3.0, 8.0)
EQUAL, COINS = "equal independent noise", "independent noise, secret samples"


def bench(on_progress: OnProgress | None = None) -> Row:
    """Root mean squares of the noise in what models make of their rounds, as multiples of the peer's."""
    cases: list[Callable[[], Row]] = [lambda t=t, f=f: _every_round(t, f) for t in ROUNDS for f in FORGETTING]  # type: ignore[misc]
    cases += [lambda r=r, t=t, e=e: _in_turns(r, t, e) for r, t in SAMPLED for e in EPSILONS]  # type: ignore[misc]
    return record("correlated-noise", [case() for case in told(cases, on_progress)])


def _every_round(rounds: int, forgetting: float) -> Row:
    effects = averages(rounds, forgetting)
    ours = least_noise(effects) / equal_noise(effects)
    last = least_noise(effects[-1:]) / equal_noise(effects[-1:])
    case = f"lda-vi, {rounds} rounds, forgetting {forgetting:g}: the averages of all rounds, best noise of any kind"
    return {**beside(case, ours, 1.0, "times", EQUAL), "last_average_alone": round(last, 3)}


def _in_turns(rate: float, rounds: int, epsilon: float) -> Row:
    turns, whole = round(1 / rate), gaussian_noise(epsilon)
    often = math.ceil(rounds * rate)
    bands = root_of_sums(turns)
    ours = whole * math.sqrt(often) * float(np.linalg.norm(bands)) * noise_of_sums(bands, rounds)
    theirs = sampled_noise(epsilon, rate, rounds) * noise_of_sums(np.ones(1), rounds)
    case = f"gradients, {rounds} rounds, a batch of {rate:g}, epsilon {epsilon:g}: sums of all rounds so far, {turns} bands"
    return beside(case, ours / theirs, 1.0, "times", COINS)


def averages(rounds: int, forgetting: float) -> Array:
    """What each round adds to each average: round t keeps the average before it times 1 - forgetting, and adds its share."""
    found = np.zeros((rounds, rounds))
    for t in range(rounds):
        share = forgetting if t else 1.0
        found[t] = (1 - share) * found[t - 1]
        found[t, t] = share
    return found


def least_noise(effects: Array) -> float:
    """The least root of summed squares that any linear mechanism leaves, for rows of norm 1 and a noise multiplier of 1."""
    return float(np.linalg.norm(effects, axis=0).sum())


def equal_noise(effects: Array) -> float:
    """The same for independent noise of one size in all rounds."""
    return float(math.sqrt(effects.shape[1]) * np.linalg.norm(effects))


def root_of_sums(bands: int) -> Array:
    """The first coefficients of (1 - x)^(-1/2), whose square sums all rounds so far."""
    steps = np.arange(1, bands)
    return np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])


def noise_of_sums(bands: Array, rounds: int) -> float:
    """The root mean square, over all rounds, of the noise in the sum so far: noise by the inverse of these bands."""
    inverse = np.zeros(rounds)
    inverse[0] = 1 / bands[0]
    for t in range(1, rounds):
        known = min(t, len(bands) - 1)
        inverse[t] = -(bands[1 : known + 1] @ inverse[t - known : t][::-1]) / bands[0]
    return float(np.sqrt(np.cumsum(np.cumsum(inverse) ** 2).mean()))


@lru_cache
def gaussian_noise(epsilon: float) -> float:
    return noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], epsilon, DELTA, 0.05, 100.0)


def sampled_noise(epsilon: float, rate: float, rounds: int) -> float:
    """The noise multiplier of as many answers about Poisson samples."""

    def spends(noise: float) -> list[Spend]:
        return [Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=rounds)]

    return noise_for(spends, epsilon, DELTA, 0.3, 100.0)
