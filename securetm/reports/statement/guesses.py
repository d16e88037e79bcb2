"""How often guesses whether somebody was in it can be right under a budget, and the limit from which a report warns."""

from __future__ import annotations

import math

from securetm.wording import upward_share

MOST_RIGHT = 0.99  # of guesses whether somebody was in it: a budget that allows more hardly limits anything
_MOST_WHOLE = 4  # whole epsilons with which guesses can be right that often, and no more often: e^5 is above 99


def right_guesses(epsilon: float, delta: float) -> float:
    """The most that guesses can be right under (epsilon, delta) if in and out are as likely (Kairouz and others 2015)."""
    return min(1.0, 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0))))


def is_limited(epsilon: float, delta: float) -> bool:
    """Whether this budget stays below the limit from which the page to sign warns."""
    return right_guesses(epsilon, delta) <= MOST_RIGHT


def limited_epsilon(epsilon: float, delta: float) -> float:
    """This epsilon if it stays below the limit, or else the largest whole number that does; 0 where there is none."""
    if is_limited(epsilon, delta):
        return epsilon
    return float(next((whole for whole in range(_MOST_WHOLE, 0, -1) if is_limited(whole, delta)), 0))


def limit_said(right: float) -> str:
    """What a share of right guesses means, in a sentence."""
    return f"Whatever anybody tries, a guess whether one given person or document was in it is right at most {of_100(right)}."


def of_100(right: float) -> str:
    """A share as times in 100, never below it."""
    return f"{upward_share(right, '')} times in 100, where a coin is right 50 times"
