"""The tables of `securetm join --dry-run`: what would leave, to whom, and what it would cost. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from securetm.foreign_text import printable
from securetm.reports.join_screen import size
from securetm.reports.key_tables import in_lines
from securetm.wording import downward, upward, upward_figure


def preview_tables(shown: Mapping[str, Any]) -> Group:
    """Everything on one screen."""
    head = Table.grid(padding=(0, 2))
    head.add_row("party", printable(f"{shown['party']}, data set {shown['data_set']} ({shown['documents']:,} documents)"))
    head.add_row("federation", printable(f"{shown['federation']}: {', '.join(shown['members'])}"))
    head.add_row("coordinator", f"{shown['coordinator']['address']}\n{in_lines(shown['coordinator']['fingerprint'])}")
    head.add_row("engine", printable(_engine(shown["engine"])))
    head.add_row("profile", f"{shown['profile']} ({shown['profile_digest'][:16]}…), model {shown['model']}")
    return Group(
        Text("Nothing was sent. Joining would send this, and nothing else that depends on your documents:", style="bold"),
        head,
        _questions(shown),
        Text(_cost(shown["cost"])),
        Text(f"The model, its words and a report with your own figures would land in {shown['lands_in']}"),
    )


def _engine(engine: Mapping[str, Any]) -> str:
    """The engine and its settings, as the party's file has them."""
    settings = ", ".join(f"{name} = {value}" for name, value in engine.items() if name != "kind")
    return f"{engine['kind']}{settings and f' ({settings})'}; nothing that is sent says which"


def _questions(shown: Mapping[str, Any]) -> Table:
    table = Table("question", "your answer", "at most", "bytes each", "who sees it")
    for one in shown["leaves_home"]:
        name = one["question"] if one["allowed"] else f"{one['question']} (your policy refuses it)"
        table.add_row(
            name, one["what"], "once" if one["times"] == 1 else f"{one['times']:,} times", size(one["bytes"]), one["seen_by"]
        )
    return table


def _cost(cost: Mapping[str, Any] | None) -> str:
    if cost is None:
        return (
            "Privacy budget: none is spent. Exact sums are sent, so no bound is given for any document. Your ledger will say "
            "so: from this run on, the total of all runs over these documents is unbounded."
        )
    fits = cost["answers_that_fit"]
    room = "" if fits is None else f" The ledger still admits {fits:,} answers of the training."
    free = f" With them all runs are unbounded, because of {why}." if (why := cost.get("unbounded_because")) else ""
    spends = f"epsilon = {upward(cost['epsilon'])} of each {cost['unit']} at delta = {upward_figure(cost['delta'])}"
    before = f"{upward(cost['spent_before'])} of {upward(cost['budget'])}; {downward(cost['left_before'])} is left"
    return f"Privacy budget: the run spends {spends}. All runs before spent {before}.{room}{free}"
