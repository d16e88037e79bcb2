"""The screen of `securetm join`: a panel that is drawn again, plain lines where there is no terminal, or lines of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from securetm.federation.joining.join_status import JoinStatus
from securetm.foreign_text import printable
from securetm.reports.streams import StandardOutput
from securetm.wording import downward, upward

_TOLD = {  # each event in words
    "connected": "connected to the coordinator",
    "lost": "connection lost: {reason}",
    "not_connected": "not connected: {reason}",
    "answered": "round {round}: answered {question} number {number}, {bytes:,} bytes",
    "refused": "refused what the coordinator asked, which is told {name} and no more: {reason} ({hint})",
    "failed": "failed here, and the coordinator is told nothing: {name}: {reason} ({hint})",
}
_ROUND_EVERY = 10.0  # seconds between two plain lines about answers


def size(count: float) -> str:
    """Bytes in the unit that people read."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def status_panel(status: JoinStatus, seconds: float) -> Panel:
    """The whole standing on one panel."""
    if status.connected_to:
        link = Text.assemble(("● ", "green"), "connected to the coordinator")
    else:
        link = Text.assemble(("○ ", "yellow"), printable(f"not connected ({status.why_not or 'dialing'}); trying again"))
    here = status.trained - status.began_at  # rounds since this process came
    left = "" if not here else _left(seconds / here * (status.rounds - status.trained))
    bar = ProgressBar(total=max(status.rounds, 1), completed=status.trained, width=40)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("round", Group(f"{status.trained:,} of {status.rounds:,} at most {left}", bar))
    facts.add_row("answered", ", ".join(f"{name} {count:,}" for name, count in sorted(status.answers.items())) or "nothing yet")
    if status.refusals:
        facts.add_row("trouble", Text(", ".join(f"{n} {c:,}" for n, c in sorted(status.refusals.items())), style="yellow"))
        facts.add_row("", Text(printable(status.trouble), style="yellow"))
    if status.spent:
        facts.add_row("epsilon", spent_in_words(status.spent))
    facts.add_row("bytes", f"{size(status.bytes_up)} sent, {size(status.bytes_down)} received")
    title = printable(f"{status.party} in {status.federation}")
    return Panel(Group(link, facts), title=title, title_align="left", subtitle="Ctrl-C leaves; you can come back", width=78)


def spent_in_words(spent: Mapping[str, Any]) -> str:
    """What was spent of each unit's budget, and what is left."""
    if spent["epsilon"] is None:
        return f"no bound; all runs unbounded, because of {spent['unbounded_because']}"
    of_run, free = f"{upward(spent['epsilon'])} of {upward(spent['of_run'])}", spent["unbounded_because"]
    of_all = f"unbounded, because of {free}" if free else f"{upward(spent['all_runs'])} of {upward(spent['budget'])}"
    return f"{of_run} by this run; all runs {of_all}, {downward(spent['left'])} left for each {spent['unit']}"


def _left(seconds: float) -> str:
    minutes = seconds / 60
    return f"(about {seconds:.0f} s left)" if seconds < 90 else f"(about {minutes:,.0f} minutes left)"


class JoinScreen:
    """Shows the standing until the run ends. What it tells, it tells from any thread."""

    def __init__(self, to: Console, *, as_json: bool = False) -> None:
        self._to, self._json, self._began = to, as_json, time.monotonic()
        self._live = None if as_json or not to.is_terminal else Live(console=to, refresh_per_second=4, transient=True)
        self._last_round = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, status: JoinStatus) -> None:
        """Draws the panel again."""
        if self._live is not None:
            self._live.update(status_panel(status, time.monotonic() - self._began))

    def tell(self, event: str, facts: Mapping[str, Any]) -> None:
        """Prints one event, as a line of words or of JSON. At a terminal the panel shows it."""
        if self._json:
            line = json.dumps({"event": event, **facts}, ensure_ascii=True)
            out = StandardOutput()
            out.write(line + "\n")
            out.flush()
        elif self._live is None and not self._too_soon(event):
            self._to.print(printable(_TOLD[event].format_map(facts)), markup=False, highlight=False, soft_wrap=True)

    def _too_soon(self, event: str) -> bool:
        """Whether a line about an answer follows the last one too soon: thousands of lines help nobody."""
        if event != "answered":
            return False
        now = time.monotonic()
        if self._last_round and now - self._last_round < _ROUND_EVERY:
            return True
        self._last_round = now
        return False


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
