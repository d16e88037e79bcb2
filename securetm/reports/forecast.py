"""A forecast of usefulness: in sentences, in the terminal, and as the command of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from securetm.plans.forecast import (
    BY_MOMENTS,
    BY_MOMENTS_ALONE,
    LDA_VI,
    LENGTHS,
    PLAIN,
    PUBLIC,
    Band,
    Forecast,
    ForecastChoice,
    ForecastSetting,
    Verdict,
    tried_as,
)
from securetm.plans.schema import MOMENTS, NO_VECTORS
from securetm.reports.document import Table, Words
from securetm.reports.terminal import STYLES, WIDEST, rich_table
from securetm.wording import counted, listed

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


_STARTS = {
    PUBLIC: ("--start public",),
    PLAIN: ("--start plain",),
    BY_MOMENTS: (f"--start {MOMENTS}",),
    BY_MOMENTS_ALONE: (f"--start {MOMENTS}", f"--vectors {NO_VECTORS}"),
}
LIST_OF_YOURS = "WORDS.txt"  # a public list, one word a line, in the place of a language


def run_to_type(
    setting: ForecastSetting, profile: str, *, parties: int, language: str, persons: int = 0, length: float = 0.0
) -> str:
    """The command of a simulation with these settings; `persons` where each has the budget, `length` where it is known."""
    told = {"documents": setting.documents, "persons": persons, "document_length": length}
    numbers = {"federation.parties": parties, "privacy.delta": setting.delta, "privacy.noise": setting.noise}
    parts = (
        f"securetm run --corpus FILE --profile {profile}",
        *(("--person COLUMN",) if persons else ()),
        f"--model {setting.model}",
        *(_STARTS[setting.start] if setting.model == LDA_VI else ()),
        f"--vocabulary {language or LIST_OF_YOURS}",
        *((f"--set vocabulary.max_words={setting.words}",) if language else ()),
        f"--topics {setting.topics} --rounds {setting.rounds} --epsilon {setting.epsilon:g}",
        *(f"--set training.{name}={value:.12g}" for name, value in told.items() if value),
        *(f"--set {name}={value:g}" for name, value in numbers.items() if value),
        "--ledgers FOLDER",
    )
    return " ".join(parts)


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
            *(_range(one.held_out), _range(one.classification), _chance(one)),
            (Words(one.verdict.value, _STYLES[one.verdict]),),
        )
        for one in chosen.each
    )
    to.print(rich_table(Table(_COLUMNS, rows, title="The same with each model")), width=width)
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
        "(python -m lab reproduce usefulness-forecast). Texts of another kind, or a list of words that fits badly, do worse."
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
