"""The fitted rule of a forecast: what noise allows, what so many words allow, and the lesser of both, with a band around it.

Its numbers are in `fitted_usefulness.json`, which `securetm reproduce usefulness-forecast` finds. It reads no document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import inf
from typing import Any, Self

import numpy as np

from securetm.contracts import Array
from securetm.forecast.forecast_features import GENERAL, LENGTH, NOISE, TOPICS, WORDS, WORDS_SEEN

FILE = "fitted_usefulness.json"
OF_NOISE = (NOISE, LENGTH, TOPICS, WORDS, GENERAL)  # what each line reads
OF_WORDS = (WORDS_SEEN, LENGTH, TOPICS, WORDS, GENERAL)


def lesser_of_lines(numbers: Array, rows: Sequence[Mapping[str, float]]) -> Array:
    """The rule itself: a line in the features of noise, a line in those of words, and smoothly the lesser of both."""
    split = 1 + len(OF_NOISE)
    noise = numbers[0] + _table(rows, OF_NOISE) @ numbers[1:split]
    words = numbers[split] + _table(rows, OF_WORDS) @ numbers[split + 1 : -1]
    sharp = np.exp(numbers[-1])
    found: Array = -sharp * np.logaddexp(-noise / sharp, -words / sharp)
    return found


def _table(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    return np.array([[row[name] for name in names] for row in rows]).reshape(len(rows), len(names))


@dataclass(frozen=True)
class FittedCurve:
    """One outcome of one model: the rule's numbers, and how far outcomes lay from it on corpora that it was not fitted on."""

    numbers: tuple[float, ...]
    below: float  # of an outcome, which at most one in ten undercuts
    above: float
    surely: float  # as `below`, of an outcome which at most one in fifty undercuts
    most: float = -inf  # an upper end that is always possible: a public start may classify well whatever the documents say

    def band(self, row: Mapping[str, float]) -> tuple[float, float, float]:
        """Lower end, middle and upper end for a setting with these features."""
        middle = float(lesser_of_lines(np.array(self.numbers), [row])[0])
        return middle + self.below, middle, max(middle + self.above, self.most)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The curve as it stands in the file."""
        known = {name: table[name] for name in ("below", "above", "surely")}
        return cls(tuple(table["numbers"]), **known, most=table.get("most", -inf))


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
    table = json.loads(resources.files("securetm.forecast").joinpath(FILE).read_text("utf-8"))
    return FittedRule({name: FittedModel.of(one) for name, one in table["models"].items()}, tuple(table["corpora"]))
