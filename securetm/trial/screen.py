"""What a trial shows: one live table while six processes run, and then what was learned, what was sent, what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from securetm.contracts import Profile
from securetm.credentials.roster import COORDINATOR
from securetm.reports.document import items
from securetm.reports.runs import shared_topics
from securetm.reports.terminal import show, titled
from securetm.trial.files import TrialFolder
from securetm.trial.processes import Event, MemberProcess, Show, TrialEnded
from securetm.wording import counted

_DIGITS = 16  # shown of a digest
SEALED = "sealed"  # the channel of answers that nobody can read


@contextmanager
def live(to: Console) -> Iterator[Show]:
    """A table of all processes that changes in place."""
    with Live(console=to, refresh_per_second=4, transient=True) as shown:

        def show(members: Sequence[MemberProcess], events: Sequence[Event]) -> None:
            shown.update(_picture(members, events))

        yield show


def _picture(members: Sequence[MemberProcess], events: Sequence[Event]) -> Group:
    columns = (Column("process", no_wrap=True), Column("process id", justify="right"), Column("state", min_width=20))
    table = titled("Six processes, one federation", *columns)
    said = _states(events)
    for one in members:
        state = "ended" if one.code == 0 else said.get(one.name, "starting")
        table.add_row(escape(one.name), str(one.number), state)
    rounds = [event for event in events if event["event"] == "round"]
    last: Mapping[str, Any] = rounds[-1] if rounds else {"round": 0, "of": 0}
    up, down = (sum(event[way] for event in rounds) / 1e6 for way in ("bytes_up", "bytes_down"))
    bar = Table.grid(Column(), Column(width=40), padding=(0, 1))
    bar.add_row(f"round {last['round']} of {last['of'] or '…'}", ProgressBar(max(last["of"], 1), last["round"]))
    return Group(table, bar, Text(f"{up:.1f} MB from the parties, {down:.1f} MB to them, over TLS 1.3 on both sides"))


def _states(events: Sequence[Event]) -> dict[str, str]:
    states: dict[str, str] = {}
    for event in events:
        kind, party = event["event"], event.get("party", "")
        if kind == "started":
            states[COORDINATOR] = "waits for parties"
        elif kind == "connected":
            states[party] = "connected"
        elif kind == "left":
            states[party] = "gone"
        elif kind == "round":
            states[COORDINATOR] = "adds masked vectors"
            states |= {name: "trains and masks" for name in states if name != COORDINATOR and states[name] != "gone"}
        elif kind == "handed_out":
            states[party] = "has the model"
        elif kind == "trained":
            states[COORDINATOR] = "hands out the model"
    return states


# ---- the last screen -------------------------------------------------------------------------------------------------


def show_ended(ended: TrialEnded, to: Console) -> None:
    trial, profile = ended.trial, ended.profile
    show([shared_topics(ended.result, to.width)], to)
    to.print(_exchange(ended))
    show(items(_unseen(ended, profile), "What nobody saw"), to)
    show(items(_seen(profile), "What is not hidden"), to)
    to.print(_same(ended))
    show(items(_places(trial), "Look around"), to)
    to.print(_invitation(trial))


def _exchange(ended: TrialEnded) -> Table:
    """What each party gave and got. The figures of the model that it has alone are from the simulation."""
    figures = ("documents", "words", "MB sent", "alone", "together")
    columns = (Column("", overflow="fold"), *(Column(head, justify="right", no_wrap=True) for head in figures))
    sealed = ended.profile.aggregation.channel == SEALED
    looks = "numbers that look random" if sealed else "sums that the coordinator can read"
    caption = (
        f"Documents and words stayed at home. What was sent are {looks}. Alone and together: the "
        "perplexity of the party's own model and of the shared one on everybody's held-out documents; lower is better."
    )
    table = titled("What each party kept, sent and got", *columns, caption=caption)
    result = ended.result
    for one in ended.sent:
        alone = (result["alone"].get(one.party) or {}).get("held_out_everywhere")
        figure = "–" if alone is None else f"{alone:,.0f}"
        together = f"[green]{result['quality']['held_out']:,.0f}[/green]"
        table.add_row(escape(one.party), f"{one.documents:,}", f"{one.words:,}", f"{one.bytes / 1e6:.1f}", figure, together)
    return table


def _unseen(ended: TrialEnded, profile: Profile) -> list[str]:
    helping = counted(profile.colluding, "party helps", "parties help")
    even = f", even if {helping} the coordinator" if profile.colluding else ""
    totals = f"the answer of one party: only totals over all {len(ended.sent)} were opened{even}"
    return [
        "a document: all of them stayed in the folder of their party",
        *([totals] if profile.aggregation.channel == SEALED else []),
        "anything on the wire: all connections are mutual TLS 1.3, between keys that the signed roster names",
    ]


def _seen(profile: Profile) -> list[str]:
    bound = "with noise in them" if profile.budget else "exact: no bound limits what they tell about one document"
    clear = "the answers of each party, from which documents can be reconstructed"
    return [
        *([] if profile.aggregation.channel == SEALED else [clear]),
        f"the totals and the model, {bound} (securetm threats {profile.name})",
        "the agreed list of words, who takes part, when, and how many bytes are sent",
    ]


def _same(ended: TrialEnded) -> str:
    rounds, copies = counted(ended.result["rounds"], "round"), counted(ended.copies, "copy", "copies")
    ran = f"{rounds} in {ended.seconds:.0f} s by six processes over TLS"
    if ended.profile.budget:
        drawn = "Noise is drawn anew in each run: topics and perplexities above are those of the simulation."
        return f"[bold green]One model at all members:[/bold green] {ran}. {drawn}"
    return (
        f"[bold green]The same model, bit for bit:[/bold green] {ran}; the {copies} of the members are the simulation's "
        f"(SHA-256 {ended.model[:_DIGITS]}…)."
    )


def _places(trial: TrialFolder) -> list[str]:
    party = trial.file(trial.parties[0])
    return [
        f"securetm topics {trial.run}",
        f"{trial.plan}: what all agree on",
        f"{party}: what one party brings and allows",
        f"securetm join {party} --dry-run: what it would send to whom, before it does",
    ]


def _invitation(trial: TrialFolder) -> Table:
    """What separate organisations type, in its order."""
    caption = f"Begin with plan and PARTY.toml of {trial.path}; docs/tutorials/five-processes.md goes through all of it."
    title = "With a friend: a federation of organisations that share no machine"
    table = titled(title, "who", "types", "then", caption=caption)
    for row in (
        ("each of you", "securetm keys new NAME", "sends NAME.request to the coordinator"),
        ("the coordinator", "securetm keys issue *.request --federation F --address HOST:PORT", "sends roster.toml to all"),
        ("each of you", "securetm keys accept roster.toml", "has compared its digits by telephone"),
        ("the coordinator", "securetm serve plan.toml", "waits for all of you"),
        ("each of you", "securetm join PARTY.toml", "has the model at the end"),
    ):
        table.add_row(*row)
    return table
