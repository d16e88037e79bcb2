"""Shows in the terminal what `securetm choose` found. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column
from rich.text import Text

from securetm.forecast import Verdict
from securetm.reports.plan_cost import bytes_of_plan, plan_said, time_of_plan
from securetm.reports.terminal import show_list, titled
from securetm.wording import counted, upward, upward_figure


def show_choice(facts: Mapping[str, Any], to: Console) -> None:
    """The chosen profile with its reason, cost and limits, or what would have to change; then the next best."""
    if facts["profile"] is None:
        _show_none(facts, to)
    else:
        _show_chosen(facts, to)
    table = titled(
        "The two next best" if facts["profile"] else "Nearest", Column("profile"), Column("why not", overflow="fold")
    )
    for one in facts["next_best"]:
        table.add_row(one["profile"], escape(one["lost_because"]))
    to.print(table)


def _show_none(facts: Mapping[str, Any], to: Console) -> None:
    to.print(Text("No profile promises all of that.", style="bold red"))
    to.print(Text(facts["asked"]))
    said = [f"{one['change']}: then {one['profile']}" for one in facts["changes"]]
    show_list("One of these would have to change", said, to)
    if not said:
        to.print("No single change, pair or three of changes is enough: ask for less.")


def _show_chosen(facts: Mapping[str, Any], to: Console) -> None:
    limit = facts["guess_limit"]
    if limit and not limit["passes"]:
        to.print(Text(limit["said"], style="bold red"))
    to.print(Text(f"{facts['profile']}: {facts['title']}", style="bold green"))
    if facts["danger"]:
        to.print(Text(facts["danger"], style="bold red"))
    to.print(Text(" ".join(facts["reason"])))
    if limit and limit["passes"]:
        to.print(Text(limit["said"], style="bold"))
    to.print()
    _show_cost(facts, to)
    if facts["forecast"]:
        of_use = facts["forecast"]["verdict"] == Verdict.OF_USE.value
        to.print(Text(facts["forecast"]["said"], style="" if of_use else "bold yellow"))
    not_kept = [f"accepted: “{one['claim']}” may fail: {one['reason']}" for one in facts["accepted"]]
    show_list("What it does not protect", [*not_kept, *facts["out_of_scope"]], to)


def _show_cost(facts: Mapping[str, Any], to: Console) -> None:
    """What the run of the plan costs; below it, what was measured of another run."""
    cost, spent, own = facts["cost"], facts["spent"], facts["plan_cost"]
    table = titled("What it costs", Column("what", overflow="fold"), Column("figure", overflow="fold"), show_header=False)
    table.add_row("the run", plan_said(own))
    table.add_row("privacy", _spent_said(spent))
    table.add_row("time", time_of_plan(own))
    table.add_row("bytes", bytes_of_plan(own))
    if facts["forecast"]:
        table.add_row("quality", f"{facts['forecast']['verdict']}, by the forecast below")
    to.print(table)
    under = "" if cost["measured_under"] == cost["profile"] else f"; measured under {cost['measured_under']}"
    at = f" at epsilon {cost['epsilon']:g}" if cost["epsilon"] else ""
    to.print(
        Text(f"Bytes and time are in proportion to another run, which was measured{at}: {cost['setting']}{under}. It had:")
    )
    for one in (*quality_said(cost), f"{cost['seconds']:.0f} s for {counted(cost['rounds'], 'round')}", bytes_said(cost)):
        to.print(Text(f"  {one}"))
    to.print(Text(f"  (again: {', '.join(cost['sources'])})"))


def _spent_said(spent: Mapping[str, Any] | None) -> str:
    if not spent:
        return "no budget: nothing limits what the results tell of one document or person"
    number = spent["trainings"]
    whole = "the one training" if number == 1 else f"all {number} trainings on these documents together"
    one = "" if number == 1 else f"; each, if it were the only one, {upward(spent['epsilon_of_one'])}"
    said = f"epsilon {upward(spent['epsilon'])} per {spent['unit']}, delta {upward_figure(spent['delta'])}, for {whole}{one}"
    return said if number > 1 else f"{said}: a second one on the same documents adds to it (--trainings)"


def quality_said(cost: Mapping[str, Any]) -> list[str]:
    """Held-out words and classification, beside what they are without noise."""
    beside = [f"{cost['perplexity_without_noise']:.0f} without noise"]
    if cost["perplexity_of_frequencies"]:
        beside.append(f"{cost['perplexity_of_frequencies']:.0f} by word frequencies alone")
    said = [f"perplexity of held-out words {cost['perplexity']:.0f} ({', '.join(beside)})"]
    if cost["f1"]:
        without = f"{cost['f1_without_noise']:.2f} without noise, {cost['f1_without_documents']:.2f} without any document"
        said.append(f"F1 of a classifier on the topics {cost['f1']:.2f} ({without})")
    return said


def bytes_said(cost: Mapping[str, Any]) -> str:
    """All messages of the training, and what encryption makes of them."""
    if cost["bytes_up"] == 1:
        return f"{cost['megabytes']:.0f} MB, {cost['counted']}"
    times = f"up {cost['bytes_up']:.1f} times, down {cost['bytes_down']:.1f} times the bytes of 32-bit numbers"
    return f"{cost['megabytes']:.0f} MB under {cost['measured_under']}; encrypted: {times}"
