"""The fit of the forecast of usefulness: the rule's numbers, and bands by corpora that were left out. It trains nothing.

Outcomes come from `forecast_points.py`. Whether the bands hold is looked at in `forecast_judged.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from lab.fits.forecast_points import MADE_UP, Point
from lab.measuring import Row
from securetm.contracts import Array
from securetm.plans.forecast.fitted_rule import OF_NOISE, OF_WORDS, lesser_of_lines, tables
from securetm.plans.forecast.forecast_features import SHORTNESS
from securetm.plans.forecast.usefulness_forecast import COVERS, SLACK

HELD_OUT, CLASSIFICATION = "held_out", "classification"
TAKEN_IN = 0.9  # of the outcomes on corpora left out: few corpora differ less than a new one will, which shall be in COVERS
FEWEST, FEWEST_CORPORA = 20, 4  # outcomes and corpora of a model; of fewer nothing is forecast
_FAR = (1 - COVERS) / 2
_STEPS = 20  # between quantiles that are kept
_MOST_STEPS = 200  # of the search for the numbers
_LINES = (*OF_NOISE, *OF_WORDS)
_BEGIN = {  # a line's level and slopes, of noise and of words, then how sharply the lesser of both counts
    HELD_OUT: (-0.8, 0.25, *[0.0] * 5, -0.3, 0.1, 0.05, *[0.0] * 4, -2.3),
    CLASSIFICATION: (0.2, 0.2, *[0.0] * 5, 1.0, *[0.0] * 6, -2.3),
}
_FREELY, _FIRMLY, _NOT_AT_ALL = 0.02, 0.3, 1e4  # how the numbers are held to those that the search begins at


@dataclass(frozen=True)
class Form:
    """Which features the lines read. Which form a rule has is chosen by the corpora that are left out in turn."""

    without: tuple[str, ...] = ()

    @property
    def held(self) -> Array:
        """How firmly each number is held."""
        slopes = [_NOT_AT_ALL if name in self.without else _FIRMLY for name in _LINES]
        split = len(OF_NOISE)
        return np.array([_FREELY, *slopes[:split], _FREELY, *slopes[split:], 0.2])


FORMS = (Form(without=(SHORTNESS,)), Form())


def fitted(points: Sequence[Point], outcome: str, form: Form) -> Array:
    """The rule's numbers that come nearest to the outcomes; each family of corpora weighs alike.

    Held-out likelihood never falls with a clearer signal.
    """
    read, values = tables([point.features for point in points]), np.array([getattr(point, outcome) for point in points])
    families = [point.family for point in points]
    weights = np.array([families.count(one) for one in families]) ** -0.5
    weights *= (len(points) / np.square(weights).sum()) ** 0.5
    begin, held = np.array(_BEGIN[outcome]), form.held
    least = np.full(len(begin), -np.inf)
    if outcome == HELD_OUT:
        least[[1, 2 + len(OF_NOISE)]] = 0.0

    def away(numbers: Array) -> Array:
        off: Array = np.concatenate([weights * (lesser_of_lines(numbers, *read) - values), held * (numbers - begin)])
        return off

    found: Array = least_squares(away, begin, bounds=(least, np.inf), max_nfev=_MOST_STEPS).x
    return found


# ---- corpora left out --------------------------------------------------------------------------------------------------


def left_out(points: Sequence[Point], outcome: str, form: Form) -> dict[str, Array]:
    """How far each outcome under a budget lies above the rule that was fitted without its family, by family."""
    apart = {}
    for family in dict.fromkeys(point.family for point in points):
        others = [point for point in points if point.family != family]
        mine = [point for point in points if point.family == family and point.noised and _within(point, others)]
        if mine and others:
            apart[family] = _apart(fitted(others, outcome, form), mine, outcome)
    return apart


def _within(point: Point, others: Sequence[Point]) -> bool:
    """Whether a forecast would be made at all: it is not where a feature lies beyond what was tried."""
    spans = {name: [f(other.features[name] for other in others) for f in (min, max)] for name in point.features}
    return all(low - SLACK <= point.features[name] <= high + SLACK for name, (low, high) in spans.items())


def _apart(numbers: Array, points: Sequence[Point], outcome: str) -> Array:
    values = np.array([getattr(point, outcome) for point in points])
    off: Array = values - lesser_of_lines(numbers, *tables([point.features for point in points]))
    return off


def of_texts(apart: Mapping[str, Array]) -> list[Array]:
    """Those of texts only: made-up documents shape the curve, and differ from each other as texts do not."""
    return [one for family, one in apart.items() if not family.startswith(MADE_UP)]


def ends(apart: Sequence[Array]) -> Row:
    """The ends of the band, what is sure and what hardly is, and quantiles of all: each family weighs alike."""
    tails = (1 - TAKEN_IN) / 2
    below, above, hardly = _quantiles(apart, (tails, 1 - tails, 1 - _FAR))
    surely = min(below, *(float(one.min()) for one in apart))
    kept = _quantiles(apart, np.linspace(0, 1, _STEPS + 1))
    named = {"below": below, "above": above, "surely": surely, "hardly": hardly}
    return {**{name: round(value, 4) for name, value in named.items()}, "apart": [round(value, 4) for value in kept]}


def _quantiles(apart: Sequence[Array], at: Sequence[float] | Array) -> list[float]:
    values, weights = np.concatenate(apart), np.concatenate([np.full(len(one), 1 / len(one)) for one in apart])
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return [float(one) for one in np.interp(at, reached, values[order])]


# ---- the rule ----------------------------------------------------------------------------------------------------------


def fit(points: Sequence[Point]) -> Row:
    """The rule for these points: for each model the numbers of both outcomes, their bands, and what was tried."""
    each = {name: [point for point in points if point.model == name] for name in dict.fromkeys(p.model for p in points)}
    models = {name: _fit_one(mine) for name, mine in each.items() if _enough(mine)}
    return {"corpora": sorted({point.family for point in points}), "covers": COVERS, "models": models}


def _enough(points: Sequence[Point]) -> bool:
    noised = [point for point in points if point.noised and not point.family.startswith(MADE_UP)]
    return len(noised) >= FEWEST and len({point.family for point in noised}) >= FEWEST_CORPORA


def _fit_one(points: Sequence[Point]) -> Row:
    names = [name for name in points[0].features if name != SHORTNESS]
    spans = {name: [f(point.features[name] for point in points) for f in (min, max)] for name in names}
    tried = {name: [round(low, 4), round(high, 4)] for name, (low, high) in spans.items()}
    return {**{outcome: _curve(points, outcome) for outcome in (HELD_OUT, CLASSIFICATION)}, "tried": tried}


def _curve(points: Sequence[Point], outcome: str) -> Row:
    known = [point for point in points if getattr(point, outcome) is not None and _tells(point, outcome)]
    each = {form: of_texts(left_out(known, outcome, form)) for form in FORMS}
    form = min(FORMS, key=lambda one: _missed(each[one]))
    numbers = [round(float(one), 4) for one in fitted(known, outcome, form)]
    return {"numbers": numbers, **ends(each[form]), "without": list(form.without), "outcomes": len(known)}


def _tells(point: Point, outcome: str) -> bool:
    """Whether a point tells of an outcome under a budget: words are predicted otherwise from tables without noise."""
    return point.noised or outcome != HELD_OUT


def _missed(apart: Sequence[Array]) -> float:
    """How far outcomes lie from the rule: the root of the mean square of a corpus, on average over corpora."""
    return float(np.mean([np.sqrt(np.mean(np.square(one))) for one in apart]))
