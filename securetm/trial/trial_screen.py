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
from securetm.credentials.member_names import COORDINATOR
from securetm.profiles import read_profile
from securetm.reports.terminal import shared_topics, show_list, titled
from securetm.trial.member_processes import MemberProcess
from securetm.trial.trial_folder import TrialFolder
from securetm.trial.trial_run import Event, Show, TrialEnded
from securetm.wording import counted

_DIGITS = 16  # shown of a digest


@contextmanager
def live(to: Console) -> Iterator[Show]:
    """A table of all processes that changes in place."""
    with Live(console=to, refresh_per_second=4, transient=True) as shown:

        def show(members: Sequence[MemberProcess], events: Sequence[Event]) -> None:
            shown.update(_picture(members, events))

        yield show


def _picture(members: Sequence[MemberProcess], events: Sequence[Event]) -> Group:
    table = titled("Six processes, one federation", Column("process", no_wrap=True), Column("number", justify="right"), "state")
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
    """The state of each process, by the coordinator's log."""
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
    """What came of the trial."""
    result, trial = ended.result, ended.trial
    to.print(shared_topics(result, to.width))
    to.print(_exchange(ended))
    profile = read_profile(result["profile"])
    show_list("What nobody saw", _unseen(ended, profile), to)
    to.print(_same(ended))
    show_list("Look into it", _commands(trial), to)
    show_list("Run it with a friend", _invitation(), to)


def _exchange(ended: TrialEnded) -> Table:
    """What each party gave and got. The figures of the model that it has alone are from the simulation."""
    heads = ("party", "kept at home", "sent", "alone", "together")
    columns = (Column(head, justify="left" if head == "party" else "right", overflow="fold") for head in heads)
    caption = "Alone and together: perplexity on everybody's held-out documents, lower is better."
    table = titled("What each party kept, sent and got", *columns, caption=caption)
    result = ended.result
    for one in ended.sent:
        alone = (result["alone"].get(one.party) or {}).get("held_out_everywhere")
        kept = f"{one.documents:,} documents, {one.words:,} words"
        together = f"[green]{result['quality']['held_out']:,.0f}[/green]"
        sent = f"{one.bytes / 1e6:.1f} MB of random-looking numbers"
        table.add_row(escape(one.party), kept, sent, "–" if alone is None else f"{alone:,.0f}", together)
    return table


def _unseen(ended: TrialEnded, profile: Profile) -> list[str]:
    parties = len(ended.sent)
    colluding = counted(profile.colluding, "party helps", "parties help")
    return [
        "a document: all of them stayed in the folder of their party",
        f"the sum of one party: the coordinator opened only totals over all {parties}, even if {colluding} it",
        "a word on the wire: every connection was mutual TLS 1.3, between keys that the signed roster names",
        f"Everybody saw the totals and the model, to which no bound applies: securetm threats {profile.name}",
    ]


def _same(ended: TrialEnded) -> str:
    rounds = counted(ended.result["rounds"], "round")
    where = f"{counted(ended.copies, 'copy', 'copies')} at the coordinator and the parties"
    return (
        f"[bold green]The same model, bit for bit:[/bold green] the simulation's and {where} "
        f"(SHA-256 {ended.model[:_DIGITS]}…). {rounds} in {ended.seconds:.0f} s, six processes."
    )


def _commands(trial: TrialFolder) -> list[str]:
    return [
        f"securetm topics {trial.run}",
        f"{trial.file(trial.parties[0])}: what a party brings and allows; {trial.plan}: what all agree on",
    ]


def _invitation() -> list[str]:
    return [
        "each organisation, once: pip install securetm; securetm keys new NAME; it sends its request to one of you",
        "whoever coordinates: securetm keys roster; all compare its fingerprint by telephone and accept it",
        "each organisation: securetm join PARTY.toml; the coordinator: securetm serve plan.toml",
        "docs/how-to/five-processes.md goes through it step by step",
    ]
