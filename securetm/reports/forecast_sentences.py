"""Sentences about a forecast of usefulness and what came true of it. This module computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

from securetm.forecast.usefulness_forecast import Forecast, Verdict

_VERDICTS = {
    Verdict.OF_USE: "the model will be of use",
    Verdict.NOT_OF_USE: "the model will be of no use",
    Verdict.CANNOT_SAY: "whether the model will be of use cannot be said",
}


def forecast_said(one: Forecast) -> str:
    """The bands in words, or why there are none."""
    if one.held_out is None or one.classification is None:
        return f"It cannot be forecast: {'; '.join(one.reasons)}."
    return (
        f"Four times of five, its perplexity on held-out words is {_ratios(one.held_out.low, one.held_out.high)} times that of "
        f"word frequencies alone, and a classifier on its topics reaches {100 * one.classification.low:.0f} to "
        f"{100 * one.classification.high:.0f} % of the F1 of the same model without noise."
    )


def before_a_run(one: Forecast | None, why: str) -> str:
    """What a run prints before anything is spent."""
    if one is None:
        return f"No forecast of usefulness: {why}."
    return f"Forecast, before anything is spent: {_VERDICTS[one.verdict]}. {chance_said(one)}{forecast_said(one)}"


def chance_said(one: Forecast) -> str:
    """How many models with such a forecast were of use, where that alone can be said; then a blank. Never all or none."""
    if one.verdict is not Verdict.CANNOT_SAY or one.chance is None:
        return ""
    share = min(max(5 * round(20 * one.chance), 5), 95)
    return f"Of models with such a forecast about {share} of 100 were of use. "


def after_a_run(result: Mapping[str, Any]) -> str:
    """What came true of the forecast; nothing where none was made or nothing could be measured."""
    told, came = result.get("forecast"), result.get("came_true")
    if not told or not came:
        return ""
    band, where = told["held_out"], "inside the band" if came["inside"] else "outside the band"
    return (
        f"Forecast: perplexity {_ratios(band['low'], band['high'])} times that of word frequencies. "
        f"It came to {exp(-came['held_out']):.2f} times, {where}."
    )


def _ratios(low: float, high: float) -> str:
    """Perplexities over that of word frequencies, for gains in nats per word."""
    return f"{exp(-high):.2f} to {exp(-low):.2f}"
