"""A served run as its operator and each party see it: dashboard, status page, screen of `join`, keys and rosters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from securetm.contracts import Unit, unit_name
from securetm.federation.coordinator.status import (
    ANSWERED,
    ASKED,
    AWAY,
    CONNECTED,
    FINISHED,
    HANDING_OUT,
    STOPPED,
    TRAINING,
    WAITING,
)
from securetm.federation.party.status import JoinStatus
from securetm.federation.refusal_errors import in_words
from securetm.foreign_text import printable
from securetm.reports import document
from securetm.reports.keys import in_lines
from securetm.reports.pages import page
from securetm.reports.terminal import rich_table, show
from securetm.reports.texts import sentence, table
from securetm.wording import counted, upward, upward_figure

MARKS: Mapping[str, str] = {AWAY: "○", CONNECTED: "●", ASKED: "…", ANSWERED: "✓"}
STATES: Mapping[str, str] = {AWAY: "away", CONNECTED: "connected", ASKED: "asked", ANSWERED: "answered"}
PHASES: Mapping[str, str] = {
    WAITING: "Waiting for parties",
    TRAINING: "Training",
    HANDING_OUT: "Handing out the model",
    FINISHED: "Finished",
    STOPPED: "Stopped",
}
COLUMNS = ("party", "state", "last round", "sent", "received", "last refusal")


def headline(facts: Mapping[str, Any]) -> str:
    """The phase, with who is missing while the run waits."""
    phase = PHASES[facts["phase"]]
    away = [name for name, party in facts["parties"].items() if party["state"] == AWAY]
    return f"{phase}: {', '.join(away)}" if facts["phase"] == WAITING and away else phase


def figures(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What stands beside the table of parties: name and value."""
    here = sum(party["state"] != AWAY for party in facts["parties"].values())
    yield "round", f"{facts['done']:,} of {facts['of']:,}"
    yield "parties connected", f"{here} of {len(facts['parties'])}"
    if facts["survivors"]:
        yield "survivors of the last round", str(len(facts["survivors"]))
    each, left = facts["seconds_per_round"], facts["seconds_left"]
    if each is not None:
        yield "seconds per round", f"{each:.2f}"
    if left is not None:
        yield "time left", time_in_words(left)
    yield "time since the start", time_in_words(facts["seconds"])
    yield "bytes from the parties", size_in_words(facts["bytes_up"])
    yield "bytes to the parties", size_in_words(facts["bytes_down"])
    if (spent := facts["epsilon"]) is not None:
        unit = unit_name(Unit(spent["unit"]))
        yield (
            f"epsilon spent per {unit}, at most",
            f"{upward(spent['epsilon'])} of {upward(spent['budget'])} (delta {upward_figure(spent['delta'])})",
        )
    for name, times in sorted(facts["refusals"].items()):
        yield f"refused: {name}", f"{times:,}"


def rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str, str]]:
    """One row for each party, in the order of the roster."""
    for name, party in facts["parties"].items():
        state = party["state"]
        last = f"{party['rounds']:,}" if party["rounds"] else "–"
        sizes = (size_in_words(party["bytes_up"]), size_in_words(party["bytes_down"]))
        yield name, f"{MARKS[state]} {STATES[state]}", last, *sizes, in_words(party["refusal"]) or "–"


def size_in_words(size: int) -> str:
    """Bytes as people read them."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:,.1f} {unit}"
    return f"{size:,} bytes"


def time_in_words(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


_COLOURS = {AWAY: "yellow", CONNECTED: "green", ASKED: "cyan", ANSWERED: "bold green"}
_NARROW = 90  # characters: below, what was sent and received is left out
_RATE = 2  # times a second
MOST_PARTIES = 25  # shown at once
_MOST_TOPICS = 20  # of a served model, on the terminal


def live_picture(to: Console, facts: Callable[[], Mapping[str, Any]]) -> Live:
    width = to.width
    return Live(console=to, refresh_per_second=_RATE, get_renderable=lambda: picture(facts(), width))


def picture(facts: Mapping[str, Any], width: int) -> RenderableType:
    """The facts as they look at a terminal of this width."""
    title = f"{escape(facts['run'])}: {facts['model']} under {escape(facts['profile'])}"
    where = f"listens at {escape(facts['address'])}"
    bar = Table.grid()  # a bar alone does not end its line
    bar.add_row(ProgressBar(max(facts["of"], 1), facts["done"], width=max(20, width - 6), complete_style="cyan"))
    named, pairs = Table.grid(padding=(0, 2)), list(figures(facts))
    beside = 2 if width >= _NARROW else 1
    for first in range(0, len(pairs), beside):
        cells = ((Text(name, style="dim"), Text(value)) for name, value in pairs[first : first + beside])
        named.add_row(*(cell for pair in cells for cell in pair))
    parts = Group(Text(headline(facts), style="bold"), bar, _parties(facts, width), named)
    return Panel(parts, title=title, title_align="left", subtitle=where, subtitle_align="left")


def show_served(result: Mapping[str, Any], to: Console) -> None:
    """The end of a run, as far as a coordinator may know it."""
    if result["topics"]:
        rows = enumerate(result["topics"][:_MOST_TOPICS], start=1)
        words = tuple((str(number), " ".join(words[:7])) for number, words in rows)
        show([document.Table(("", "top words"), words, title="Topics of the shared model", numeric=(0,))], to)
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


_AGAIN = 3  # seconds


def status_page(facts: Mapping[str, Any]) -> str:
    title = f"{facts['run']}: {headline(facts)}"
    again = 0 if facts["phase"] in (FINISHED, STOPPED) else _AGAIN
    told: dict[str, Any] = {"facts": facts, "figures": list(figures(facts)), "columns": COLUMNS, "rows": list(rows(facts))}
    return page("status.html", title, ("page", "status"), again=again, **told)


def party_status_page(facts: Mapping[str, Any]) -> str:
    """The text of a party's page, for its own operator."""
    title, figures = f"{facts['party']} in {facts['federation']}", list(party_figures(facts))
    return page("party_status.html", title, ("page", "status"), again=_AGAIN, facts=facts, figures=figures)


def status_pages(
    facts: Callable[[], Mapping[str, Any]], shown: Callable[[Mapping[str, Any]], str] = status_page
) -> Mapping[str, Callable[[], tuple[str, bytes]]]:
    """The page and the same facts as JSON, by their paths."""
    return {
        "/": lambda: ("text/html; charset=utf-8", shown(facts()).encode()),
        "/status.json": lambda: ("application/json", json.dumps(facts(), indent=2).encode()),
    }


def party_figures(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "coordinator", "connected" if facts["connected"] else f"not connected: {facts['why_not'] or 'dialing'}"
    yield "round", f"{facts['round']:,} of {facts['rounds']:,} at most"
    for question, times in sorted(facts["answers"].items()):
        yield f"answered: {question}", f"{times:,}"
    for name, times in sorted(facts["refusals"].items()):
        yield f"refused: {name}", f"{times:,}"
    if facts["spent"]:
        yield "epsilon", spent_in_words(facts["spent"])
    yield "bytes", f"{size_in_words(facts['bytes_up'])} sent, {size_in_words(facts['bytes_down'])} received"
    yield "certificate ends in", f"{facts['certificate_seconds'] / 86_400:,.0f} days"
    yield "room on the disk", size_in_words(facts["disk_free_bytes"])


def status_panel(status: JoinStatus, seconds: float) -> Panel:
    if status.connected_to:
        link = Text.assemble(("● ", "green"), "connected to the coordinator")
    else:
        link = Text.assemble(("○ ", "yellow"), printable(f"not connected ({status.why_not or 'dialing'}); trying again"))
    here = status.trained - status.began_at  # rounds since this process came
    left = ""
    if here:
        ahead = seconds / here * (status.rounds - status.trained)
        left = f"(about {ahead:.0f} s left)" if ahead < 90 else f"(about {ahead / 60:,.0f} minutes left)"
    bar = ProgressBar(total=max(status.rounds, 1), completed=status.trained, width=40)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("round", Group(f"{status.trained:,} of {status.rounds:,} at most {left}", bar))
    facts.add_row("answered", ", ".join(f"{name} {count:,}" for name, count in sorted(status.answers.items())) or "nothing yet")
    if status.refusals:
        facts.add_row("trouble", Text(", ".join(f"{n} {c:,}" for n, c in sorted(status.refusals.items())), style="yellow"))
        facts.add_row("", Text(printable(status.trouble), style="yellow"))
    if status.spent:
        facts.add_row("epsilon", spent_in_words(status.spent))
    facts.add_row("bytes", f"{size_in_words(status.bytes_up)} sent, {size_in_words(status.bytes_down)} received")
    title = printable(f"{status.party} in {status.federation}")
    return Panel(Group(link, facts), title=title, title_align="left", subtitle="Ctrl-C leaves; you can come back", width=78)


def spent_in_words(spent: Mapping[str, Any]) -> str:
    return sentence("federation.spent", spent)


class JoinScreen:
    """Shows the status at a terminal until the run ends."""

    def __init__(self, to: Console) -> None:
        self._live, self._began = Live(console=to, refresh_per_second=4, transient=True), time.monotonic()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, status: JoinStatus) -> None:
        self._live.update(status_panel(status, time.monotonic() - self._began))


def ended_panel(report: Mapping[str, Any]) -> Group:
    """What came of the run, for its last screen."""
    facts = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))  # a path is never cut
    quality = report.get("quality", {})
    facts.add_row("rounds", f"{report['rounds']:,}")
    if quality:
        facts.add_row("on your own documents", ", ".join(f"{name} {value:.4g}" for name, value in quality.items()))
    if report.get("spent"):
        facts.add_row("epsilon", spent_in_words(report["spent"]))
    facts.add_row("what may leave", f"{report['directory']}/release")
    facts.add_row("words, report", report["directory"])
    topics = [f"{number + 1:>3}  {' '.join(words[:8])}" for number, words in enumerate(report["topics"][:10])]
    command = f"securetm topics {report['directory']}"
    return Group(Text("The run has ended, and the model is yours.", style="bold"), facts, *topics, f"See all: {command}")


def preview_tables(shown: Mapping[str, Any]) -> Group:
    head = Table.grid(padding=(0, 2))
    head.add_row("party", printable(f"{shown['party']}, data set {shown['data_set']} ({shown['documents']:,} documents)"))
    head.add_row("federation", printable(f"{shown['federation']}: {', '.join(shown['members'])}"))
    head.add_row("coordinator", f"{shown['coordinator']['address']}\n{in_lines(shown['coordinator']['fingerprint'])}")
    engine = ", ".join(f"{name} = {value}" for name, value in shown["engine"].items() if name != "kind")
    said = f"{shown['engine']['kind']}{engine and f' ({engine})'}; nothing that is sent says which"
    head.add_row("engine", printable(said))
    head.add_row("profile", f"{shown['profile']} ({shown['profile_digest'][:16]}…), model {shown['model']}")
    return Group(
        Text("Nothing was sent. Joining would send this, and nothing else that depends on your documents:", style="bold"),
        head,
        rich_table(table("federation.questions", shown["leaves_home"], size_in_words)),
        Text(sentence("federation.cost", shown["cost"])),
        Text(f"The model, its words and a report with your own figures would land in {shown['lands_in']}"),
    )
