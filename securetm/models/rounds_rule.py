"""How often to ask under a budget, and how much words' totals weigh: rules of public numbers, for models that ask for tables.

Each round costs a part of the budget, so more rounds are noisier ones. A rule's two numbers were fitted on corpora on which
settings may be chosen (`python -m lab reproduce rounds-rule`, and `rounds-without-vectors`), and looked at on others. Topics
that begin at random have more to learn, and are asked for more often. It reads no document.
"""

from __future__ import annotations

from math import erfc, exp, log, sqrt
from typing import NamedTuple


class RoundsRule(NamedTuple):
    """How many rounds there are: so many for each unit of the signal, and no more than the most."""

    each: float
    most: int


FROM_PUBLIC = RoundsRule(0.1455, 8)  # more were not tried
FROM_PLAIN = RoundsRule(0.258, 12)  # topics at random
MOST_TOTALS = 2.0  # the weight of totals where the signal is weak
LEAST_TOTALS, LEAST_AFTER_PAIRS = 0.5, 1.0  # less of it bought nothing: on docstrings; on posts, if pairs were asked for first
TOTALS_AT, PLAIN_TOTALS_AT = 20.0, 40.0  # signals at which totals weigh as much as counts: seen on titles, M10, messages
_DIGITS = 3  # of the noise, so that its last bits decide nothing


def rounds_for(documents: int, topics: int, words: int, noise: float, rule: RoundsRule = FROM_PUBLIC) -> int:
    """The number of rounds for so many documents and a table of topics and words, with that noise in a single round."""
    return rounds_of_signal(signal(documents, topics, words, noise), *rule)


def rounds_of_signal(one: float, each: float, most: int) -> int:
    """The rule itself, with its two numbers."""
    return min(max(round(one * each), 1), most)


def totals_for(
    documents: int, topics: int, words: int, noise: float, *, plain: bool = False, after_pairs: bool = False
) -> float:
    """The weight of words' totals in the first round (`VariationalLDA.totals`), of a plain start or another.

    The noise on a word's total costs most where documents are few or short. The weight costs counts a part of their clip, so
    where it would be small there is none. A first round about random topics has less to lose. After a start by moments, which
    tells something of totals, it has more.
    """
    at = PLAIN_TOTALS_AT if plain else TOTALS_AT
    weight = min((at / signal(documents, topics, words, noise)) ** 2, MOST_TOTALS)
    return float(f"{weight:.{_DIGITS}g}") if weight >= (LEAST_AFTER_PAIRS if after_pairs else LEAST_TOTALS) else 0.0


def signal(documents: int, topics: int, words: int, noise: float) -> float:
    """How far documents stand above the noise of one round: their number, over the length of the noise in units of the clip."""
    return documents / (noise * sqrt(topics * words))


def noise_of_one_round(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian answer with that epsilon and delta (Balle and Wang 2018), to three digits."""
    low, high = 1e-3, 1e4
    while high > low * (1 + 1e-6):
        middle = sqrt(low * high)
        low, high = (middle, high) if _delta_of(middle, epsilon) > delta else (low, middle)
    return float(f"{high:.{_DIGITS}g}")


def _delta_of(noise: float, epsilon: float) -> float:
    """Delta of a Gaussian answer at that epsilon."""
    above, below = 1 / (2 * noise) - epsilon * noise, -1 / (2 * noise) - epsilon * noise
    tail = erfc(-below / sqrt(2)) / 2
    return erfc(-above / sqrt(2)) / 2 - (exp(min(epsilon + log(tail), 0.0)) if tail > 0 else 0.0)
