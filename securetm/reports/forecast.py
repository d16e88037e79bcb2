"""A forecast of usefulness: in sentences and in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from securetm.corpus.languages import ENGLISH_CODE, language_name
from securetm.data_classes import replace
from securetm.plans.forecast import (
    BY_MOMENTS_ALONE,
    LENGTHS,
    PLAIN,
    Band,
    Forecast,
    ForecastChoice,
    Verdict,
    tried_as,
)
from securetm.reports.document import Table, Words
from securetm.reports.terminal import STYLES, WIDEST, rich_table
from securetm.reports.texts import said, sentence


def forecast_said(one: Forecast) -> str:
    return sentence("forecast.bands", one)


def before_a_run(one: Forecast | None, why: str, language: str | None = None) -> str:
    """What a run prints before anything is spent; its documents are in the language of this code."""
    if one is None:
        return f"No forecast of usefulness: {why}."
    one = in_language(one, language)
    return sentence("forecast.before", one.verdict.value, chance_said(one, language), forecast_said(one))


def in_language(one: Forecast, language: str | None) -> Forecast:
    """The forecast for documents in the language of this code: that a model is of use cannot be said where none was tried."""
    return replace(one, verdict=Verdict.CANNOT_SAY) if _untried(one, language) and one.verdict is Verdict.OF_USE else one


def _untried(one: Forecast, language: str | None) -> bool:
    """Whether it is of a start without vectors in another language than English, the only start there."""
    plain = one.held_out is not None and one.setting.start in (PLAIN, BY_MOMENTS_ALONE)
    return plain and language not in (None, ENGLISH_CODE)


def chance_said(one: Forecast, language: str | None = None) -> str:
    """How many models with such a forecast were of use, where that alone can be said; then a blank. Never all or none.

    All were of English texts. Of a start without vectors in another language, the only one there, nothing is said: of three
    runs in Slovenian, German and Spanish none was of use, where 90 of 100 were expected.
    """
    if _untried(one, language):
        return f"{sentence('forecast.foreign', language_name(language or ''))} "
    if one.verdict is not Verdict.CANNOT_SAY or one.chance is None:
        return ""
    share = min(max(5 * round(20 * one.chance), 5), 95)
    return f"Of models with such a forecast about {share} of 100 were of use. "


def after_a_run(result: Mapping[str, Any]) -> str:
    """What came true of the forecast; nothing where none was made or nothing could be measured."""
    told, came = result.get("forecast"), result.get("came_true")
    return sentence("forecast.after", told["held_out"], came) if told and came else ""


_COLUMNS = ("model", "rounds", "nats a word over frequencies", "share of F1 without noise", "chance of use", "forecast")
_STYLES = {Verdict.OF_USE: "fine", Verdict.NOT_OF_USE: "danger", Verdict.CANNOT_SAY: "alarm"}


def show_forecast(chosen: ForecastChoice, to: Console, warnings: Sequence[str] = (), run: str = "") -> None:
    """The verdict in words, every model in a table, and what would be better."""
    asked, width = chosen.asked, min(to.width, WIDEST)
    told = f"\n\n{chance_said(asked)}{forecast_said(asked)}"
    verdict = Text.assemble(
        f"{setting_said(asked)}\n\n", ("Forecast: ", ""), (asked.verdict.value, STYLES[_STYLES[asked.verdict]]), told
    )
    to.print(Panel(verdict, title=Text("Will it be of use?", style="bold"), title_align="left", padding=(1, 2), width=width))
    rows = tuple(
        (
            tried_as(one.setting),
            f"{one.setting.rounds or '?'}",
            *(_range(one.held_out), _range(one.classification)),
            "?" if one.chance is None else f"{100 * one.chance:.0f} %",
            (Words(one.verdict.value, _STYLES[one.verdict]),),
        )
        for one in chosen.each
    )
    to.print(rich_table(Table(_COLUMNS, rows, title="The same with each model")), width=width)
    for warning in warnings:
        to.print(f"! {warning}", markup=False, width=width, style="yellow")
    for note in (*notes(chosen), *((f"That run: {run}",) if run else ())):
        to.print(f"• {note}", markup=False, width=width)


def setting_said(one: Forecast) -> str:
    """What was asked about, in short."""
    return sentence("forecast.setting", one.setting, tried_as(one.setting))


def notes(chosen: ForecastChoice) -> tuple[str, ...]:
    asked = chosen.asked
    best = best_said(chosen.best) if chosen.best is not None else ""
    by_length = [f"{verdict.value} for {length:g}" for length, verdict in chosen.by_length]
    differ = len({verdict for _, verdict in chosen.by_length}) > 1
    too_long = asked.held_out is None and asked.setting.length > LENGTHS[-1]
    texts = [name for name in asked.corpora if not name.startswith("made-up")]
    return said("forecast.notes", chosen, best, by_length, differ, too_long, texts)


def best_said(best: Forecast) -> str:
    return sentence("forecast.best", setting_said(best), best.verdict.value)


def _range(band: Band | None) -> str:
    return "?" if band is None else f"{band.low:.2f} to {band.high:.2f}"
