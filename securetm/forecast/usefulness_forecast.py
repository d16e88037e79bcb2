"""Forecasts whether a model under a budget will be of use: bands for held-out words and classification, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from securetm.forecast.forecast_setting import ForecastSetting

COVERS = 0.8  # how often an outcome lies in its band, as was tried on corpora that the rule was not fitted on


class Verdict(Enum):
    """What a forecast says. `OF_USE`: the whole band lies above what word frequencies predict."""

    OF_USE = "of use"
    NOT_OF_USE = "not of use"
    CANNOT_SAY = "cannot say"


@dataclass(frozen=True)
class Band:
    """Between `low` and `high` the outcome lies four times of five; `middle` is the best single guess."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """What to expect of a setting."""

    setting: ForecastSetting  # with the rounds that were counted with
    held_out: Band | None  # nats per held-out word more than word frequencies; None: the setting is too far from all tried
    classification: Band | None  # F1 of a classifier on the topics, over its F1 on topics of the same model without noise
    verdict: Verdict
    reasons: tuple[str, ...]  # why it cannot be said, sentence by sentence
    corpora: tuple[str, ...]  # that stand behind the figures

    def record(self) -> dict[str, Any]:
        """The forecast as plain data, for --json."""
        return {**asdict(self), "verdict": self.verdict.value, "covers": COVERS}


def forecast(setting: ForecastSetting) -> Forecast:
    """What to expect of a training with these public numbers. It reads no document and costs no privacy."""
    raise NotImplementedError
