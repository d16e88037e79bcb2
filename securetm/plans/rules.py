"""The fitted rules of public numbers behind a recommendation: rounds, words, totals and start under a budget.

Their numbers are rows of `rules.json`, each with the corpora that it was fitted to and the command that fits it. Each round
costs a part of the budget, and each word noise on all its counts; a longer list and more rounds tell more of the documents.
Topics that begin at random have more to learn, and are asked for more often. In a text of five words a model finds little that
contradicts the topics that it began at, so short texts that stand out of the noise are asked for pairs of words first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from math import erfc, exp, log, sqrt
from typing import Any

from securetm.data_classes import dataclass

AT_PUBLIC, AT_RANDOM = "the training begins at public topics", "the training begins at random topics"
AFTER_PAIRS, WORDS_OPEN, SHORT, AT_WORDS = (
    "pairs of words are asked for first",
    "a budget leaves the number of words open",
    "documents are short",
    "the training begins at words among embeddings",
)
_LEAST_SIGNAL = 1e-9
_DIGITS, _DIGITS_OF_START = 3, 5  # of noise and weights, so that last bits decide nothing


@dataclass(frozen=True)
class Row:
    """One fitted rule: the setting that it decides, in which case, its numbers, and what they were fitted to."""

    setting: str
    where: str
    value: Mapping[str, Any]
    corpora: tuple[str, ...]
    command: str

    @property
    def why(self) -> str:
        """Where the numbers come from, for the comment at a setting of a plan."""
        return f"as {self.where}: fitted on {', '.join(self.corpora)} ({self.command})"


@cache
def _rows() -> tuple[Row, ...]:
    table = json.loads(resources.files("securetm.plans").joinpath("rules.json").read_text("utf-8"))
    return tuple(Row(**{**row, "corpora": tuple(row["corpora"])}) for row in table)


def rule(setting: str, where: str) -> Row:
    """The row of the table that decides this setting there."""
    return next(row for row in _rows() if (row.setting, row.where) == (setting, where))


# ---- rounds -----------------------------------------------------------------------------------------------------------


def rounds_rule(*, plain: bool) -> Row:
    """By which numbers rounds are counted; as from public topics, where the start is left open."""
    return rule("training.rounds", AT_RANDOM if plain else AT_PUBLIC)


def rounds_for(documents: int, topics: int, words: int, noise: float, *, plain: bool = False) -> int:
    """The number of rounds for so many documents and a table of topics and words, with that noise in a single round."""
    return rounds_of_signal(signal(documents, topics, words, noise), **rounds_rule(plain=plain).value)


def rounds_of_signal(one: float, each: float, most: int) -> int:
    """The rule itself: so many rounds for each unit of the signal, and no more than the most."""
    return min(max(round(one * each), 1), most)


CENTRES_RULE = rule("training.rounds", AT_WORDS)


def rounds_of_centres(documents: int, topics: int, noise: float) -> int:
    """The number of rounds for centres of so many documents, with that noise in a single round."""
    return rounds_of_signal(documents / (noise * topics), **CENTRES_RULE.value)


# ---- the weight of words' totals --------------------------------------------------------------------------------------


def totals_rule(*, plain: bool, after_pairs: bool) -> Row:
    """By which numbers totals weigh: a first round about random topics has less to lose, and one after pairs more."""
    return rule("model.totals", AT_RANDOM if plain else AFTER_PAIRS if after_pairs else AT_PUBLIC)


def totals_for(
    documents: int, topics: int, words: int, noise: float, *, plain: bool = False, after_pairs: bool = False
) -> float:
    """The weight of words' totals in the first round (`VariationalLDA.totals`).

    The noise on a word's total costs most where documents are few or short. The weight costs counts a part of their clip, so
    where it would be small there is none.
    """
    found = totals_rule(plain=plain, after_pairs=after_pairs).value
    weight = min((found["at"] / signal(documents, topics, words, noise)) ** 2, found["most"])
    return float(f"{weight:.{_DIGITS}g}") if weight >= found["least"] else 0.0


# ---- words ------------------------------------------------------------------------------------------------------------

WORDS_RULE = rule("vocabulary.max_words", WORDS_OPEN)
LISTS: tuple[int, ...] = tuple(WORDS_RULE.value["lists"])  # others were not tried


def words_for(documents: int, noise: float) -> int:
    """The length of the list for so many documents, with that noise in a single round."""
    value = WORDS_RULE.value
    one = signal(documents, value["usual_topics"], value["usual_words"], noise)
    return int(nearest(one, value["at_one"], value["power"], LISTS))


def nearest(one: float, at_one: float, power: float, values: Sequence[float]) -> float:
    """The rule itself, with its two numbers: of the values that were tried the nearest one."""
    asked = log(at_one) + power * log(max(one, _LEAST_SIGNAL))
    return min(values, key=lambda value: abs(log(value) - asked))


# ---- the start --------------------------------------------------------------------------------------------------------

START_RULE, SHARE_RULE = rule("training.start", SHORT), rule("training.start_share", AFTER_PAIRS)
USUAL_START: float = SHARE_RULE.value["share"]  # of the budget, for the question of moments
MOST_START: float = SHARE_RULE.value["most"]  # the training needs the rest


def asks_first(documents: int, length: float, topics: int, words: int, noise: float) -> bool:
    """Whether topics of `moments` are asked for first: texts of so many words are short, and stand out of the noise.

    `noise` is that of a single round that has the whole budget. A length of 0 says nothing.
    """
    value = START_RULE.value
    return 0 < length <= value["longest"] and bool(signal(documents, topics, words, noise) >= value["from_signal"])


def noise_of_start(epsilon: float, delta: float, share: float) -> float:
    """The noise multiplier of the question of `moments`, which spends that share of a budget.

    Shares are of the squares of what answers spend, which add up for Gaussian answers.
    """
    return float(f"{noise_of_one_round(epsilon, delta) / sqrt(share):.{_DIGITS_OF_START}g}")


# ---- signal and noise -------------------------------------------------------------------------------------------------


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
