"""How the forecast of usefulness does: each corpus is judged by a rule that was fitted without it. It trains nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lab.fits.forecast_points import MADE_UP, Point
from lab.fits.forecast_rule import CLASSIFICATION, HELD_OUT, fit
from lab.measuring import Row
from securetm.plans.forecast.fitted_rule import FittedModel
from securetm.plans.forecast.usefulness_forecast import Outlook, Verdict, beyond, outlook

_CHANCES = (0.0, 0.1, 0.3, 0.7, 0.9, 1.0)
_FACTS = ("corpus", "documents", "model", "profile", "epsilon", "words", "topics")


def judged(points: Sequence[Point]) -> list[Row]:
    """What was forecast and what came, for every outcome under a budget on texts.

    Everything that the forecast has was found without the corpus that it is judged on: numbers, features, bands and verdicts.
    """
    texts = sorted({point.family for point in points if not point.family.startswith(MADE_UP)})
    told = list[Row]()
    for family in texts:
        models = fit([point for point in points if point.family != family])["models"]
        mine = [point for point in points if point.family == family and point.noised and point.model in models]
        told += [_judged(FittedModel.of(models[point.model]), point) for point in mine]
    return told


def _judged(model: FittedModel, point: Point) -> Row:
    facts = {name: point.row.get(name) for name in _FACTS}
    came = {HELD_OUT: point.held_out, CLASSIFICATION: point.classification}
    kept = {f"{name}_came": None if value is None else round(value, 3) for name, value in came.items()}
    if beyond(point.features, model):
        nothing = {f"{name}_inside": None for name in came}
        return {**facts, **kept, **nothing, "verdict": Verdict.CANNOT_SAY.value, "chance": None, "wrongly_of_use": False}
    told = outlook(point.features, model)
    wrong = told.verdict is Verdict.OF_USE and point.held_out <= 0
    said = {"verdict": told.verdict.value, "chance": told.chance, "wrongly_of_use": wrong}
    return {**facts, **kept, **_bands(told, point), **said}


def _bands(told: Outlook, point: Point) -> Row:
    found = dict[str, Any]()
    for name in (HELD_OUT, CLASSIFICATION):
        band, came = getattr(told, name), getattr(point, name)
        found[name] = [round(one, 3) for one in (band.low, band.middle, band.high)]
        found[f"{name}_inside"] = None if came is None else bool(band.low <= came <= band.high)
    return found


# ---- tables ------------------------------------------------------------------------------------------------------------


def family_of(row: Row) -> str:
    """The corpus that a judged row's is a part of."""
    return str(row["corpus"]).removeprefix("2,000 of ").partition(",")[0]


def summary(rows: Sequence[Row]) -> list[Row]:
    """By corpus, and over all of them: how often the outcome lay in its band, and how often "of use" was wrong."""
    parts = {name: [row for row in rows if family_of(row) == name] for name in dict.fromkeys(map(family_of, rows))}
    return [{"corpus": name, **_summed(part)} for name, part in {**parts, "all": list(rows)}.items()]


def by_model(rows: Sequence[Row]) -> list[Row]:
    """The same by model."""
    names = dict.fromkeys(row["model"] for row in rows)
    return [{"model": name, **_summed([row for row in rows if row["model"] == name])} for name in names]


def _summed(rows: Sequence[Row]) -> Row:
    def share(outcome: str) -> float | None:
        known = [row[f"{outcome}_inside"] for row in rows if row[f"{outcome}_inside"] is not None]
        return round(float(np.mean(known)), 3) if known else None

    verdicts = {one.value: sum(row["verdict"] == one.value for row in rows) for one in Verdict}
    wrong = {
        "wrongly_of_use": sum(row["wrongly_of_use"] for row in rows),
        "wrongly_not_of_use": sum(row["verdict"] == Verdict.NOT_OF_USE.value and row["held_out_came"] > 0 for row in rows),
    }
    inside = {f"{outcome}_inside": share(outcome) for outcome in (HELD_OUT, CLASSIFICATION)}
    beyond_tried = sum(row["chance"] is None for row in rows)
    return {"outcomes": len(rows), **inside, **verdicts, **wrong, "not_tried": beyond_tried}


def by_chance(rows: Sequence[Row]) -> list[Row]:
    """Which share of models was of use, by the chance that the forecast gave them."""
    found = []
    for low, high in pairwise(_CHANCES):
        mine = [row for row in rows if row["chance"] is not None and low <= min(row["chance"], 0.99) < high]
        if mine:
            chance = round(float(np.mean([row["chance"] for row in mine])), 2)
            useful = round(float(np.mean([row["held_out_came"] > 0 for row in mine])), 2)
            found.append({"chance": chance, "of_use": useful, "outcomes": len(mine)})
    return found


def coverage_said(rows: Sequence[Row]) -> str:
    """The same in two sentences, for the page that describes the forecast."""
    *each, told = summary(rows)
    least = [100 * min(row[f"{name}_inside"] for row in each) for name in (HELD_OUT, CLASSIFICATION)]
    inside = [100 * told[f"{name}_inside"] for name in (HELD_OUT, CLASSIFICATION)]
    return (
        f"Of {told['outcomes']} outcomes under a budget {told['not_tried']} were too far from the others for a forecast; "
        f"of the rest {inside[0]:.0f} % lay in the first band and {inside[1]:.0f} % in the second (of the worst corpus "
        f'{least[0]:.0f} and {least[1]:.0f} %). "Of use" was said {told["of use"]} times and was wrong {told["wrongly_of_use"]}'
        f' times; "not of use" {told["not of use"]} times, wrong {told["wrongly_not_of_use"]} times.'
    )
