"""Outcomes of private models on corpora, by public numbers: from trials of the forecast, and from the committed frontier.

What is fitted to them is in `forecast_fit.py`. It trains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.measuring import Row
from lab.reproduce.contenders import FREQUENCIES, MOMENTS, PLAIN, PUBLIC, RADIUS, STARTED, STARTED_PLAIN
from lab.reproduce.frontier_cases import NO_NOISE, PARTIES
from lab.reproduce.frontier_corpora import NEWS, NEWS_FEW, SNIPPETS, SNIPPETS_FEW, TITLES, WORDS
from securetm.plans.forecast.forecast_features import LDA_VI, features
from securetm.plans.forecast.forecast_setting import ForecastSetting, under_profile
from securetm.plans.profiles import read_profile

GENERAL_WORDS = ", words of general English"  # a list that no document of the corpus chose
MADE_UP = "made-up documents"
JUDGING = 0.1  # the share of the documents of the frontier that nobody trained on
_OF_LDA_VI = (PUBLIC, PLAIN, STARTED, STARTED_PLAIN)
_SIZES = {
    NEWS: (18_728, 33.5),
    SNIPPETS: (12_703, 5.8),
    TITLES: (17_653, 3.7),
    NEWS_FEW: (1_992, 33.3),
    SNIPPETS_FEW: (1_986, 5.8),
}


@dataclass(frozen=True)
class Point:
    """One outcome: which model on which corpus, by which features."""

    corpus: str
    model: str
    features: Mapping[str, float]
    held_out: float  # gain over word frequencies
    classification: float | None  # F1 over that of the same model without noise
    row: Row

    @property
    def family(self) -> str:
        """The corpus that it is a part of."""
        return self.corpus.removeprefix("2,000 of ").partition(",")[0]

    @property
    def noised(self) -> bool:
        """Whether a budget was spent."""
        return self.row["epsilon"] is not None


def points_of_trials(rows: Sequence[Row]) -> list[Point]:
    """The outcomes of trials, each beside the same model without noise."""
    settled = {_alike(row): row["f1"] for row in rows if row["epsilon"] is None}
    return [_of_trial(row, settled.get(_alike(row))) for row in rows]


def _alike(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("corpus", "documents", "model", "words", "topics", "radius", "seed"))


def _of_trial(row: Row, settled: float | None) -> Point:
    radius = 1.0 if row["model"] == MOMENTS else row["radius"]
    found = _features(row, row["documents"], row["words"], row["length"], row["deviation"] / radius, row["radius"])
    share = row["f1"] / settled if settled else None
    return Point(row["corpus"], row["model"], found, row["held_out"] - row["frequencies"], share, row)


def points_of_frontier(rows: Sequence[Row]) -> list[Point]:
    """The outcomes of the committed frontier: whole federations, over words that no document chose."""
    judged = [row for row in rows if row["judging"] == JUDGING]
    frequencies = {row["corpus"]: row["held_out"] for row in judged if row["model"] == FREQUENCIES}
    settled = {(r["corpus"], r["topics"], r["model"]): r["f1"] for r in judged if r["profile"] == NO_NOISE}
    tried = [row for row in judged if row["model"] in (*_OF_LDA_VI, MOMENTS)]
    return [_of_frontier(row, frequencies, settled) for row in tried]


def _of_frontier(row: Row, frequencies: Mapping[str, float], settled: Mapping[Any, float]) -> Point:
    documents, length = _SIZES[row["corpus"]]
    factor = 0.0 if row["profile"] == NO_NOISE else under_profile(read_profile(row["profile"]), PARTIES)
    found = _features(row, round((1 - JUDGING) * documents), WORDS, length, row["noise"] * factor, RADIUS)
    without = settled.get((row["corpus"], row["topics"], row["model"]))
    share = row["f1"] / without if without else None
    return Point(row["corpus"], row["model"], found, row["held_out"] - frequencies[row["corpus"]], share, row)


def _features(row: Row, documents: int, words: int, length: float, deviation: float, radius: float) -> Mapping[str, float]:
    """What the rule reads of an outcome; `deviation` is over the radius."""
    model = LDA_VI if row["model"] in _OF_LDA_VI else row["model"]
    general = row["corpus"].endswith(GENERAL_WORDS)
    setting = ForecastSetting(
        documents, 1.0, model=model, general_list=general, words=words, topics=row["topics"], length=length, radius=radius
    )
    return features(setting, deviation)
