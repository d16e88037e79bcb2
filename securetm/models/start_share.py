"""How much of a budget goes to the question of `moments` before a training that begins at its topics: a rule of public numbers.

Shares are of the squares of what answers spend, which add up for Gaussian answers: a question with the share s has 1 / sqrt(s)
times the noise with which it alone would spend the whole budget. It reads no document.
"""

from __future__ import annotations

from math import sqrt

from securetm.models.rounds_rule import noise_of_one_round

USUAL_START = 0.5  # of the budget
MOST_START = 0.95  # the training needs the rest
_DIGITS = 5


def noise_of_start(epsilon: float, delta: float, share: float) -> float:
    """The noise multiplier of the question of `moments`, which spends that share of a budget of epsilon and delta."""
    return float(f"{noise_of_one_round(epsilon, delta) / sqrt(share):.{_DIGITS}g}")
