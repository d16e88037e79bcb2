"""The fitted rule of a forecast: what noise allows, what so many words allow, and the lesser of both, with a band around it.

Its numbers are in `fitted_usefulness.json`, which `python -m lab reproduce usefulness-forecast` finds. It reads no document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Self

import numpy as np

from securetm.contracts import Array
from securetm.plans.forecast.forecast_features import GENERAL, LENGTH, NOISE, SHORTNESS, TOPICS, WORDS, WORDS_SEEN

FILE = "fitted_usefulness.json"
OF_NOISE = (NOISE, LENGTH, SHORTNESS, TOPICS, WORDS, GENERAL)  # what each line reads
OF_WORDS = (WORDS_SEEN, LENGTH, SHORTNESS, TOPICS, WORDS, GENERAL)


def tables(rows: Sequence[Mapping[str, float]]) -> tuple[Array, Array]:
    """The features that each line reads, row by row, behind a one for the line's level."""
    return _table(rows, OF_NOISE), _table(rows, OF_WORDS)


def _table(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    return np.array([[1.0, *(row[name] for name in names)] for row in rows]).reshape(len(rows), 1 + len(names))


def lesser_of_lines(numbers: Array, noise: Array, words: Array) -> Array:
    """The rule itself: a line in the features of noise, a line in those of words, and smoothly the lesser of both."""
    split, sharp = noise.shape[1], np.exp(numbers[-1])
    both = np.logaddexp(-(noise @ numbers[:split]) / sharp, -(words @ numbers[split:-1]) / sharp)
    found: Array = -sharp * both
    return found


@dataclass(frozen=True)
class FittedCurve:
    """One outcome of one model: the rule's numbers, and how far outcomes lay from it on corpora that it was not fitted on.

    Each corpus was left out in turn. All distances are from the rule's middle; each corpus weighs alike.
    """

    numbers: tuple[float, ...]
    below: float  # the lower end of the band
    above: float
    surely: float  # how far outcomes lie above the rule at least: none lay lower, on any corpus left out
    hardly: float  # of an outcome, which at most one in ten exceeds
    apart: tuple[float, ...]  # quantiles of the distances, at equal steps from the least to the most

    def middle(self, row: Mapping[str, float]) -> float:
        """The best single guess for a setting with these features."""
        return float(lesser_of_lines(np.array(self.numbers), *tables([row]))[0])

    def chance_above_zero(self, middle: float) -> float:
        """Which share of the outcomes with this middle lay above zero."""
        levels = np.linspace(0.0, 1.0, len(self.apart))
        return 1.0 - float(np.interp(-middle, self.apart, levels))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The curve as it stands in the file."""
        known = {name: table[name] for name in ("below", "above", "surely", "hardly")}
        return cls(tuple(table["numbers"]), **known, apart=tuple(table["apart"]))


@dataclass(frozen=True)
class FittedModel:
    """What the rule knows of one model: its curves, and between which features it was tried."""

    held_out: FittedCurve
    classification: FittedCurve
    tried: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The model as it stands in the file."""
        curves = {name: FittedCurve.of(table[name]) for name in ("held_out", "classification")}
        return cls(**curves, tried={name: (low, high) for name, (low, high) in table["tried"].items()})


@dataclass(frozen=True)
class FittedRule:
    """The rule for every model, by its name, and the corpora that it was fitted to."""

    models: Mapping[str, FittedModel]
    corpora: tuple[str, ...]


@cache
def fitted_rule() -> FittedRule:
    """The rule that is shipped."""
    table = json.loads(resources.files("securetm.plans.forecast").joinpath(FILE).read_text("utf-8"))
    return FittedRule({name: FittedModel.of(one) for name, one in table["models"].items()}, tuple(table["corpora"]))
