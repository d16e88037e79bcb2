"""Which model, words and topics the forecast expects most of, for a budget and so many documents. It trains nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import log2
from typing import Any

from securetm.forecast.forecast_features import LDA_VI, MOMENTS
from securetm.forecast.forecast_setting import BY_MOMENTS, BY_MOMENTS_ALONE, PLAIN, PUBLIC, ForecastSetting
from securetm.forecast.usefulness_forecast import Forecast, documents_needed, forecast
from securetm.models.words_rule import LISTS

MODELS = (*((LDA_VI, start) for start in (PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE)), (MOMENTS, PUBLIC))
OTHERS = (("lda", PLAIN), ("nmf", PLAIN), ("prodlda", PLAIN))  # which are shown beside them, and never best under a budget
WORDS_TRIED, TOPICS_TRIED = LISTS, (5, 10, 20, 50)
_COVERED_BY_ONE, _BY_EACH_DOUBLING = -0.46, 0.117  # of all words of texts: 47 % by a list of 250, 87 % by one of 2,000


@dataclass(frozen=True)
class ForecastChoice:
    """What was asked about, every model in its place, and the setting that promises most."""

    asked: Forecast
    each: tuple[Forecast, ...]  # the same setting with each model
    best: Forecast | None  # None: nothing can be said of any
    needed: int | None  # documents with which the setting asked about is "of use"

    def record(self) -> dict[str, Any]:
        """All of it as plain data, for --json."""
        best = self.best.record() if self.best else None
        each = [one.record() for one in self.each]
        return {**self.asked.record(), "models": each, "best": best, "documents_needed": self.needed}


def choose_settings(setting: ForecastSetting, words: tuple[int, ...] = (), topics: tuple[int, ...] = ()) -> ForecastChoice:
    """The forecast of a setting, beside those of other models, and the best of all numbers of words and topics.

    `words` and `topics` are those to choose from; without any, the setting's own are kept.
    """
    each = tuple(forecast(replace(setting, model=model, start=start)) for model, start in (*MODELS, *OTHERS))
    known = [one for one in map(forecast, _choices(setting, words, topics)) if one.held_out is not None]
    best = max(known, key=_promise, default=None)
    return ForecastChoice(forecast(setting), each, best, documents_needed(setting))


def _choices(setting: ForecastSetting, words: tuple[int, ...], topics: tuple[int, ...]) -> Iterator[ForecastSetting]:
    for (model, start), size, count in product(MODELS, words or (setting.words,), topics or (setting.topics,)):
        yield replace(setting, model=model, start=start, words=size, topics=count, rounds=0)


def _promise(one: Forecast) -> float:
    """The gain for each word of a text, on the list or not: a word that is not on it is predicted by its frequency."""
    assert one.held_out is not None
    covered = _COVERED_BY_ONE + _BY_EACH_DOUBLING * log2(one.setting.words)
    return one.held_out.middle * min(max(covered, 0.1), 1.0)
