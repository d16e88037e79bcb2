"""How a served run stands, at the operator's terminal, drawn again twice a second. It shows public facts only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from securetm.federation.serving.standing import ANSWERED, ASKED, AWAY, CONNECTED
from securetm.reports.federation_facts import COLUMNS, figures, headline, rows, size_in_words
from securetm.reports.terminal import MOST_TOPICS, titled
from securetm.wording import counted

_COLOURS = {AWAY: "yellow", CONNECTED: "green", ASKED: "cyan", ANSWERED: "bold green"}
_NARROW = 90  # characters: below, what was sent and received is left out
_RATE = 2  # times a second
MOST_PARTIES = 25  # shown at once


class Dashboard:
    """Shows the facts until it is left, and leaves the last picture on the screen."""

    def __init__(self, to: Console, facts: Callable[[], Mapping[str, Any]]) -> None:
        self._facts = facts
        self._width = to.width
        self._live = Live(console=to, refresh_per_second=_RATE, get_renderable=self._picture, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def _picture(self) -> RenderableType:
        return picture(self._facts(), self._width)


def picture(facts: Mapping[str, Any], width: int) -> RenderableType:
    """The facts as they look at a terminal of this width."""
    title = f"{escape(facts['run'])}: {facts['model']} under {escape(facts['profile'])}"
    where = f"listens at {escape(facts['address'])}"
    bar = Table.grid()  # a bar alone does not end its line
    bar.add_row(ProgressBar(max(facts["of"], 1), facts["done"], width=max(20, width - 6), complete_style="cyan"))
    said = Text(headline(facts), style="bold")
    parts = Group(said, bar, _parties(facts, width), _figures(facts, width))
    return Panel(parts, title=title, title_align="left", subtitle=where, subtitle_align="left")


def show_served(result: Mapping[str, Any], to: Console) -> None:
    """The end of a run, as far as a coordinator may know it."""
    if result["topics"]:
        table = titled("Topics of the shared model", Column("", justify="right"), Column("top words", overflow="fold"))
        for number, words in enumerate(result["topics"][:MOST_TOPICS], start=1):
            table.add_row(str(number), escape(" ".join(words[:7])))
        to.print(table)
    for name, value in result["quality"].items():
        to.print(f"{name}: {value:,.3g}")
    up, down = size_in_words(result["bytes_up"]), size_in_words(result["bytes_down"])
    rounds = counted(result["rounds"], "round")
    to.print(f"{rounds} in {result['seconds']:.0f} s; {up} from the parties, {down} to them.")
    to.print(f"What may leave is in [bold]{escape(result['directory'])}/release[/bold], with a statement; nothing else may.")
    to.print(f"Kept in [bold]{escape(result['directory'])}[/bold]; each party has the model in its own home.")


def _parties(facts: Mapping[str, Any], width: int) -> Table:
    wide = width >= _NARROW
    shown = [place for place, name in enumerate(COLUMNS) if wide or name not in ("sent", "received")]
    right = ("last round", "sent", "received")
    columns = [Column(COLUMNS[place], justify="right" if COLUMNS[place] in right else "left") for place in shown]
    left_out = len(facts["parties"]) - MOST_PARTIES
    more = f"and {left_out} more parties; those that are away stand first" if left_out > 0 else None
    table = Table(*columns, header_style="bold", expand=True, caption=more, caption_justify="left")
    states = [party["state"] for party in facts["parties"].values()]
    whole = list(zip(rows(facts), states, strict=True))
    if left_out > 0:
        whole.sort(key=lambda row: row[1] != AWAY)
    for cells, state in whole[:MOST_PARTIES]:
        table.add_row(*(Text(cells[place], style=_COLOURS[state] if place == 1 else "") for place in shown))
    return table


def _figures(facts: Mapping[str, Any], width: int) -> Table:
    """Names and values, two pairs a line where there is room."""
    table, pairs = Table.grid(padding=(0, 2)), list(figures(facts))
    beside = 2 if width >= _NARROW else 1
    for first in range(0, len(pairs), beside):
        cells = ((Text(name, style="dim"), Text(value)) for name, value in pairs[first : first + beside])
        table.add_row(*(cell for pair in cells for cell in pair))
    return table
