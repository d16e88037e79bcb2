"""How many words to list under a budget: a rule of public numbers, for a table of topics and words.

Each word costs noise on all its counts, and a longer list holds more of what documents say. The rule's two numbers were fitted
on made-up documents (`python -m lab reproduce settings-rule`), and looked at on corpora. It reads no document.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from securetm.models.rounds_rule import signal

USUAL_WORDS, USUAL_TOPICS = 1_000, 20  # the table whose noise the signal is over
LISTS = (250, 500, 1_000, 2_000)  # others were not tried
WORDS_AT_ONE, POWER = 15.625, 1.0  # the list where the signal is 1, and the power with which it grows
_LEAST = 1e-9  # signal


def words_for(documents: int, noise: float) -> int:
    """The length of the list for so many documents, with that noise in a single round."""
    return int(nearest(signal(documents, USUAL_TOPICS, USUAL_WORDS, noise), WORDS_AT_ONE, POWER, LISTS))


def nearest(one: float, at_one: float, power: float, values: Sequence[float]) -> float:
    """The rule itself, with its two numbers: of the values that were tried the nearest one."""
    asked = log(at_one) + power * log(max(one, _LEAST))
    return min(values, key=lambda value: abs(log(value) - asked))
