"""Which model, start, words and topics the forecast expects most of, for a budget and so many documents. It trains nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import log2
from typing import Any

from securetm.plans.forecast.forecast_features import LDA_VI, MOMENTS
from securetm.plans.forecast.forecast_setting import BY_MOMENTS, BY_MOMENTS_ALONE, PLAIN, PUBLIC, ForecastSetting
from securetm.plans.forecast.usefulness_forecast import LENGTHS, Forecast, Verdict, documents_needed, forecast, forecast_at
from securetm.plans.rules import LISTS

MODELS = (*((LDA_VI, start) for start in (PUBLIC, PLAIN, BY_MOMENTS, BY_MOMENTS_ALONE)), (MOMENTS, PUBLIC))
OTHERS = (("lda", PLAIN), ("nmf", PLAIN), ("prodlda", PLAIN))  # which are shown beside them, and never best under a budget
WORDS_TRIED, TOPICS_TRIED = LISTS, (5, 10, 20, 50)
_NOT_APART = 0.03  # nats a word: on corpora that the rule was not fitted to, outcomes lay further than that from it
_COVERED_BY_ONE, _BY_EACH_DOUBLING = -0.46, 0.117  # of all words of texts: 47 % by a list of 250, 87 % by one of 2,000


@dataclass(frozen=True)
class ForecastChoice:
    """What was asked about, every model in its place, and the setting that promises most."""

    asked: Forecast
    each: tuple[Forecast, ...]  # the same setting with each model
    best: Forecast | None  # None: nothing can be said of any
    needed: int | None  # documents with which the setting asked about is "of use"
    by_length: tuple[tuple[float, Verdict], ...] = ()  # of documents so long, where nobody says how long they are

    def record(self) -> dict[str, Any]:
        """All of it as plain data, for --json."""
        best = self.best.record() if self.best else None
        each = [one.record() for one in self.each]
        by_length = [{"length": length, "verdict": verdict.value} for length, verdict in self.by_length]
        found = {**self.asked.record(), "models": each, "best": best, "documents_needed": self.needed}
        return {**found, **({"by_length": by_length} if by_length else {})}


def choose_settings(
    setting: ForecastSetting,
    words: tuple[int, ...] = (),
    topics: tuple[int, ...] = (),
    lengths: Sequence[float] = (),
    *,
    vectors: bool = True,
    open_to_best: bool = False,
) -> ForecastChoice:
    """The forecast of a setting, beside those of other models, and the best of all numbers of words and topics.

    `words` and `topics` are those to choose from; without any, the setting's own are kept. `lengths` are those of documents,
    the setting's own without any. Without `vectors`, no start that reads some is best. A setting that is `open_to_best` is the
    best one, if there is any.
    """
    told = tuple(lengths) or (setting.length,)
    best = best_settings(setting, told, words=words, topics=topics, vectors=vectors)
    if open_to_best and best is not None:
        setting = replace(best.setting, length=setting.length, rounds=0)
    each = tuple(
        forecast_at(replace(setting, model=model, start=start, start_said=True), told) for model, start in (*MODELS, *OTHERS)
    )
    by_length = tuple((length, forecast(replace(setting, length=length)).verdict) for length in told) if len(told) > 1 else ()
    return ForecastChoice(forecast_at(setting, told), each, best, documents_needed(setting, told), by_length)


def best_settings(
    setting: ForecastSetting,
    lengths: Sequence[float] = LENGTHS,
    *,
    words: tuple[int, ...] = WORDS_TRIED,
    topics: tuple[int, ...] = TOPICS_TRIED,
    vectors: bool = True,
) -> Forecast | None:
    """The forecast of the best model, start, words and topics for documents of such lengths; None where none can be forecast.

    Without `vectors`, no start that reads some is chosen from.
    """
    reading = () if vectors else (PUBLIC, BY_MOMENTS)
    choices = _choices(setting, words, topics)
    return _best((one for one in choices if one.model != LDA_VI or one.start not in reading), lengths)


@dataclass(frozen=True)
class _Judged:
    """A setting and what it promises for documents of each length."""

    setting: ForecastSetting
    known: int  # lengths of which something can be said
    of_use: int  # lengths of which it will be of use
    promise: float  # on average

    @classmethod
    def of(cls, setting: ForecastSetting, lengths: Sequence[float]) -> _Judged:
        each = [forecast(replace(setting, length=length)) for length in lengths]
        known = [_promise(one) for one in each if one.held_out is not None]
        return cls(setting, len(known), sum(one.verdict is Verdict.OF_USE for one in each), sum(known) / len(each))


def _best(choices: Iterable[ForecastSetting], lengths: Sequence[float]) -> Forecast | None:
    """The setting with the most words and topics of those that promise as much as the best one, as far as the rule can tell."""
    judged = [one for one in (_Judged.of(choice, lengths) for choice in choices) if one.known]
    if not judged:
        return None
    most = max(judged, key=lambda one: (one.known, one.of_use, one.promise))
    as_good = [
        one
        for one in judged
        if (one.known, one.of_use) == (most.known, most.of_use) and one.promise >= most.promise - _NOT_APART
    ]
    best = max(as_good, key=lambda one: (one.setting.words * one.setting.topics, one.promise)).setting
    return forecast_at(best, lengths)


def _choices(setting: ForecastSetting, words: tuple[int, ...], topics: tuple[int, ...]) -> Iterator[ForecastSetting]:
    for (model, start), size, count in product(MODELS, words or (setting.words,), topics or (setting.topics,)):
        yield replace(setting, model=model, start=start, start_said=True, words=size, topics=count, rounds=0)


def _promise(one: Forecast) -> float:
    """The gain for each word of a text, on the list or not: a word that is not on it is predicted by its frequency."""
    assert one.held_out is not None
    covered = _COVERED_BY_ONE + _BY_EACH_DOUBLING * log2(one.setting.words)
    return one.held_out.middle * min(max(covered, 0.1), 1.0)
