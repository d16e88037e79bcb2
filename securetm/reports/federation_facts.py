"""How a served run stands, in the words that the dashboard and the status page share. It computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from securetm.accounting.calculator.budget_report import unit_name
from securetm.contracts import Unit
from securetm.federation.declining import in_words
from securetm.federation.serving.standing import (
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
from securetm.wording import upward, upward_figure

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
            return f"{size / least:.1f} {unit}"
    return f"{size} bytes"


def time_in_words(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
