"""The fit of the forecast of usefulness, and how it does on corpora that it was not fitted on. It trains nothing.

Rows come from `forecast_trials.py`, and judges also from the committed frontier of private models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from securetm.contracts import Array
from securetm.experiments.bench_frame import Row
from securetm.experiments.contenders import FREQUENCIES, MOMENTS, PLAIN, PUBLIC, RADIUS
from securetm.experiments.frontier_cases import NO_NOISE
from securetm.experiments.frontier_corpora import NEWS, NEWS_FEW, SNIPPETS, SNIPPETS_FEW, TITLES, WORDS
from securetm.experiments.private_frontier import PARTIES
from securetm.forecast.fitted_rule import FittedCurve, lesser_of_lines
from securetm.forecast.forecast_features import LDA_VI, features
from securetm.forecast.forecast_setting import ForecastSetting, under_profile
from securetm.forecast.usefulness_forecast import COVERS, SLACK, Verdict, verdict_of
from securetm.profiles import read_profile

HELD_OUT, CLASSIFICATION = "held_out", "classification"
GENERAL_WORDS = ", words of general English"  # a list that no document of the corpus chose
MADE_UP = "made-up documents"
JUDGES = ("20 Newsgroups", "TagMyNews", "SMS")  # corpora that the rule is not fitted to
HARDLY = 0.02
FEWEST = 20  # outcomes of a model; of fewer nothing is forecast
_MOST_STEPS = 200  # of the search for the numbers
JUDGING = 0.1  # the share of the documents of the frontier that nobody trained on
_HELD = np.array([0.02, *[0.1] * 5, 0.02, *[0.1] * 5, 0.2])  # how firmly the numbers hold to those that the search begins at
_BEGIN = {
    HELD_OUT: (-0.8, 0.25, 0.0, 0.0, 0.0, 0.0, -0.3, 0.1, 0.05, 0.0, 0.0, 0.0, -2.3),
    CLASSIFICATION: (0.2, 0.2, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.3),
}
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


# ---- outcomes ----------------------------------------------------------------------------------------------------------


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
    tried = [row for row in judged if row["model"] in (PUBLIC, PLAIN, MOMENTS)]
    return [_of_frontier(row, frequencies, settled) for row in tried]


def _of_frontier(row: Row, frequencies: Mapping[str, float], settled: Mapping[Any, float]) -> Point:
    documents, length = _SIZES[row["corpus"]]
    factor = 0.0 if row["profile"] == NO_NOISE else under_profile(read_profile(row["profile"]), PARTIES)
    found = _features(row, round((1 - JUDGING) * documents), WORDS, length, row["noise"] * factor, RADIUS)
    share = row["f1"] / settled[row["corpus"], row["topics"], row["model"]]
    return Point(row["corpus"], row["model"], found, row["held_out"] - frequencies[row["corpus"]], share, row)


def _features(row: Row, documents: int, words: int, length: float, deviation: float, radius: float) -> Mapping[str, float]:
    """What the rule reads of an outcome; `deviation` is over the radius."""
    model = LDA_VI if row["model"] in (PUBLIC, PLAIN) else row["model"]
    general = row["corpus"].endswith(GENERAL_WORDS)
    setting = ForecastSetting(
        documents, 1.0, model=model, general_list=general, words=words, topics=row["topics"], length=length, radius=radius
    )
    return features(setting, deviation)


# ---- the fit -----------------------------------------------------------------------------------------------------------


def fitted(points: Sequence[Point], outcome: str) -> Array:
    """The rule's numbers that come nearest to the outcomes; each family of corpora weighs alike."""
    rows, values = [point.features for point in points], np.array([getattr(point, outcome) for point in points])
    families = [point.family for point in points]
    weights = np.array([families.count(one) for one in families]) ** -0.5
    weights *= (len(points) / np.square(weights).sum()) ** 0.5
    begin = np.array(_BEGIN[outcome])

    def away(numbers: Array) -> Array:
        off: Array = np.concatenate([weights * (lesser_of_lines(numbers, rows) - values), _HELD * (numbers - begin)])
        return off

    found: Array = least_squares(away, begin, max_nfev=_MOST_STEPS).x
    return found


def left_out(points: Sequence[Point], outcome: str) -> dict[str, Array]:
    """How far each outcome lies above the rule that was fitted without its family, by family."""
    apart = {}
    for family in dict.fromkeys(point.family for point in points):
        others = [point for point in points if point.family != family]
        mine = [point for point in points if point.family == family and _within(point, others)]
        if mine:
            apart[family] = _apart(fitted(others, outcome), mine, outcome)
    return apart


def _within(point: Point, others: Sequence[Point]) -> bool:
    """Whether a forecast would be made at all: it is not where a feature lies beyond what was tried."""
    spans = {name: [f(other.features[name] for other in others) for f in (min, max)] for name in point.features}
    return all(low - SLACK <= point.features[name] <= high + SLACK for name, (low, high) in spans.items())


def _apart(numbers: Array, points: Sequence[Point], outcome: str) -> Array:
    values = np.array([getattr(point, outcome) for point in points])
    off: Array = values - lesser_of_lines(numbers, [point.features for point in points])
    return off


def ends(apart: Mapping[str, Array]) -> tuple[float, float, float]:
    """Lower and upper end of the band, and a lower end that is hardly ever undercut: quantiles, each family weighing alike.

    Of texts only: made-up documents shape the curve, and differ from each other as texts do not.
    """
    texts = [one for family, one in apart.items() if not family.startswith(MADE_UP)]
    values, weights = np.concatenate(texts), np.concatenate([np.full(len(one), 1 / len(one)) for one in texts])
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, high, surely = np.interp([(1 - COVERS) / 2, (1 + COVERS) / 2, HARDLY], reached, values[order])
    return float(low), float(high), float(surely)


def fit(points: Sequence[Point]) -> Row:
    """The rule, as it is shipped: for each model the numbers of both outcomes, their bands, and what was tried."""
    own = [point for point in points if point.family not in JUDGES]
    each = {name: [point for point in own if point.model == name] for name in dict.fromkeys(point.model for point in own)}
    models = {name: _fit_one(mine) for name, mine in each.items() if len(mine) >= FEWEST}
    return {"corpora": sorted({point.family for point in own}), "covers": COVERS, "models": models}


def _fit_one(points: Sequence[Point]) -> Row:
    names = points[0].features
    spans = {name: [f(point.features[name] for point in points) for f in (min, max)] for name in names}
    tried = {name: [round(low, 4), round(high, 4)] for name, (low, high) in spans.items()}
    return {**{outcome: _curve(points, outcome) for outcome in (HELD_OUT, CLASSIFICATION)}, "tried": tried}


def _curve(points: Sequence[Point], outcome: str) -> Row:
    known = [point for point in points if getattr(point, outcome) is not None]
    below, above, surely = ends(left_out(known, outcome))
    numbers = [round(float(one), 4) for one in fitted(known, outcome)]
    band = {"below": round(below, 4), "above": round(above, 4), "surely": round(surely, 4)}
    if outcome == CLASSIFICATION:
        band["most"] = round(float(np.quantile([point.classification for point in known], (1 + COVERS) / 2)), 4)
    return {"numbers": numbers, **band, "outcomes": len(known)}


# ---- how it does -------------------------------------------------------------------------------------------------------


def judged(rule: Row, points: Sequence[Point]) -> list[Row]:
    """What was forecast and what came, for every outcome under a budget on a corpus that the rule was not fitted to."""
    mine = [point for point in points if point.family in JUDGES and point.row["epsilon"] is not None]
    return [_judged(rule["models"][point.model], point) for point in mine if point.model in rule["models"]]


def _judged(model: Row, point: Point) -> Row:
    row, told = point.row, dict[str, Any]()
    for outcome in (HELD_OUT, CLASSIFICATION):
        curve, came = model[outcome], getattr(point, outcome)
        band = FittedCurve.of(curve).band(point.features)
        inside = None if came is None else bool(band[0] <= came <= band[2])
        told |= {
            outcome: [round(one, 3) for one in band],
            f"{outcome}_came": came and round(came, 3),
            f"{outcome}_inside": inside,
        }
    verdict = verdict_of(told[HELD_OUT][1] + model[HELD_OUT]["surely"], told[HELD_OUT][2])
    facts = {name: row.get(name) for name in ("corpus", "documents", "model", "profile", "epsilon", "words", "topics")}
    wrong = verdict is Verdict.OF_USE and point.held_out <= 0
    return {**facts, **told, "verdict": verdict.value, "wrongly_of_use": wrong}


def summary(rows: Sequence[Row]) -> list[Row]:
    """By corpus, and over all of them: how often the outcome lay in its band, and how often "of use" was wrong."""
    families = dict.fromkeys(row["corpus"].removeprefix("2,000 of ").partition(",")[0] for row in rows)
    parts = {name: [row for row in rows if name in row["corpus"]] for name in families}
    return [_summed(name, part) for name, part in {**parts, "all": list(rows)}.items()]


def _summed(name: str, rows: Sequence[Row]) -> Row:
    def share(outcome: str) -> float:
        return round(float(np.mean([row[f"{outcome}_inside"] for row in rows if row[f"{outcome}_inside"] is not None])), 3)

    verdicts = {one.value: sum(row["verdict"] == one.value for row in rows) for one in Verdict}
    wrong = sum(row["wrongly_of_use"] for row in rows)
    inside = {f"{outcome}_inside": share(outcome) for outcome in (HELD_OUT, CLASSIFICATION)}
    return {"corpus": name, "outcomes": len(rows), **inside, **verdicts, "wrongly_of_use": wrong}
