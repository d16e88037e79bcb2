"""A forecast of usefulness in the terminal: verdict, bands for each model, the best setting. It computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from securetm.forecast.best_settings import ForecastChoice
from securetm.forecast.usefulness_forecast import LENGTHS, Band, Forecast, Verdict, tried_as
from securetm.reports.budget_tables import WIDEST
from securetm.reports.forecast_sentences import chance_said, forecast_said
from securetm.reports.terminal import titled
from securetm.wording import counted, listed

_COLUMNS = ("model", "rounds", "nats a word over frequencies", "share of F1 without noise", "chance of use", "forecast")
_STYLES = {Verdict.OF_USE: "bold green", Verdict.NOT_OF_USE: "bold red", Verdict.CANNOT_SAY: "bold yellow"}


def show_forecast(chosen: ForecastChoice, to: Console, warnings: Sequence[str] = (), run: str = "") -> None:
    """The verdict in words, every model in a table, and what would be better."""
    asked, width = chosen.asked, min(to.width, WIDEST)
    told = f"\n\n{chance_said(asked)}{forecast_said(asked)}"
    verdict = Text.assemble(
        f"{setting_said(asked)}\n\n", ("Forecast: ", ""), (asked.verdict.value, _STYLES[asked.verdict]), told
    )
    to.print(Panel(verdict, title=Text("Will it be of use?", style="bold"), title_align="left", padding=(1, 2), width=width))
    table = titled("The same with each model", *_COLUMNS)
    for one in chosen.each:
        bands = (_range(one.held_out), _range(one.classification), _chance(one))
        verdict = Text(one.verdict.value, style=_STYLES[one.verdict])
        table.add_row(tried_as(one.setting), f"{one.setting.rounds or '?'}", *bands, verdict)
    to.print(table, width=width)
    for sentence in warnings:
        to.print(f"! {sentence}", markup=False, width=width, style="yellow")
    for sentence in (*notes(chosen), *((f"That run: {run}",) if run else ())):
        to.print(f"• {sentence}", markup=False, width=width)


def setting_said(one: Forecast) -> str:
    """What was asked about, in short."""
    setting = one.setting
    unit = "person" if setting.documents_per_person > 1 else "document"
    return (
        f"{tried_as(one.setting)}, {setting.documents:,} documents, epsilon {setting.epsilon:g} per {unit}, "
        f"{setting.words:,} words, {counted(setting.topics, 'topic')}, {counted(setting.rounds, 'round')}"
    )


def notes(chosen: ForecastChoice) -> Iterator[str]:
    """What would be better, how many documents it takes, and what stands behind the figures."""
    if chosen.best is not None:
        yield best_said(chosen.best)
    if chosen.asked.verdict is not Verdict.OF_USE and chosen.asked.held_out is not None:
        yield _needed(chosen.needed)
    if chosen.by_length:
        yield lengths_said(chosen)
    elif chosen.asked.held_out is None and chosen.asked.setting.length > LENGTHS[-1]:
        yield (
            f"Texts with {chosen.asked.setting.length:g} words of the list were not tried: no forecast speaks of them, and "
            "none should be taken from shorter ones. Count only words that are on the list."
        )
    texts = tuple(name for name in chosen.asked.corpora if not name.startswith("made-up"))
    yield (
        f"Fitted to {listed(texts)} and to made-up documents; each corpus was forecast by a rule that was fitted without it "
        "(securetm reproduce usefulness-forecast). Texts of another kind, or a list of words that fits badly, do worse."
    )


def best_said(best: Forecast) -> str:
    """The settings of which most is expected."""
    return f"Most is expected of {setting_said(best)}: {best.verdict.value}."


def lengths_said(chosen: ForecastChoice) -> str:
    """What the answer would be if somebody said how long documents are, and a warning where that changes it."""
    said = listed(tuple(f"{verdict.value} for {length:g}" for length, verdict in chosen.by_length))
    differ = len({verdict for _, verdict in chosen.by_length}) > 1
    warning = "The length changes the answer: say" if differ else "The length does not change the answer. Say"
    longest = "texts of more than about 150 words of the list were not tried at all"
    return f"Nobody said how long documents are. By words of the list: {said}. {warning} --document-length; {longest}."


def _needed(documents: int | None) -> str:
    if documents is None:
        return "No number of documents was found with which it would surely be of use."
    return f"With about {float(f'{documents:.2g}'):,.0f} documents the forecast would be: of use."


def _chance(one: Forecast) -> str:
    return "?" if one.chance is None else f"{100 * one.chance:.0f} %"


def _range(band: Band | None) -> str:
    return "?" if band is None else f"{band.low:.2f} to {band.high:.2f}"
