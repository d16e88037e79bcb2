"""What `securetm threats` shows in the terminal, of facts that reports/threat_tables.py gathers. It gathers and judges nothing.

Eighty letters are enough: what tried a claim stands beside it, and how that ended below its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from securetm.leakage.verdicts import NOT_TESTED, REFUTED
from securetm.reports.audit_wording import CAUTION
from securetm.reports.threat_refusals import LIES, lies_in_words, outside_claims, stale_in_words
from securetm.reports.threat_tables import NEVER
from securetm.wording import counted


def show_threats(facts: Mapping[str, Any], to: Console) -> None:
    """A table for each adversary, what is accepted, and one sentence on how the profile stands."""
    to.print(Text(f"{facts['profile']}: {facts['title']}", style="bold"))
    for threats in facts["threat_models"]:
        own = "its threat model" if threats["own"] else "another threat model"
        to.print(f"\n[bold]{escape(threats['name'])}[/bold], {own}: {escape(threats['title'])}")
        for adversary in threats["adversaries"]:
            _show_adversary(adversary, to)
        if threats["accepts"]:
            to.print(_accepts(threats))
    required = (wanted for threats in facts["threat_models"] for one in threats["adversaries"] for wanted in one["required"])
    for sentence in outside_claims(facts["refusals"], any(wanted["lies"] for wanted in required)):
        to.print(sentence, markup=False)
    to.print(_sentence(facts))
    to.print(CAUTION)


def _show_adversary(adversary: Mapping[str, Any], to: Console) -> None:
    who = f"{_who(adversary)}, sees: {', '.join(adversary['sees'])}"
    if not adversary["required"]:
        to.print(f"{escape(who)}. Nothing is required against it.")
        return
    table = _empty(who, "required, and who claims it")
    for wanted in adversary["required"]:
        _rows(table, "\n".join(_asked(wanted)), _results(wanted))
    to.print(table)


def _accepts(threats: Mapping[str, Any]) -> Table:
    table = _empty("Knowingly accepted that this may not hold", "claim, and the reason")
    for accepted in threats["accepts"]:
        _rows(table, escape(f"“{accepted['claim']}”: {accepted['reason']}"), _results(accepted))
    return table


def _empty(title: str, asked: str) -> Table:
    """Two columns: names of attacks and what is said of them stay readable at eighty letters."""
    table = Table(title=escape(title), title_justify="left", header_style="bold", expand=True)
    table.add_column(asked, overflow="fold", ratio=2)
    table.add_column("what tried it, and how that ended", overflow="fold", ratio=4)
    return table


def _rows(table: Table, first: str, results: Sequence[str]) -> None:
    """One row for each result; what they have in common stands in the first."""
    for number, result in enumerate(results, start=1):
        table.add_row(first if number == 1 else "", result, end_section=number == len(results))


def _who(adversary: Mapping[str, Any]) -> str:
    helpers = adversary["colludes_with_parties"]
    helped = f", helped by {helpers} {'party' if helpers == 1 else 'parties'}" if helpers else ""
    return f"{adversary['adversary'].capitalize()} ({adversary['behaviour']}{helped})"


def _asked(wanted: Mapping[str, Any]) -> tuple[str, str]:
    unit = f" per {wanted['unit']}" if wanted["unit"] else ""
    alike = dict.fromkeys((one["by"], one["colluding"]) for one in wanted["claimed_by"])
    said = ["claimed by " + escape(_promise(by, helpers, wanted["claimed_by"])) for by, helpers in alike]
    gap = ["[bold red]GAP:[/bold red] " + escape(wanted["gap"])] if wanted["gap"] else []
    return escape(f"“{wanted['claim']}”{unit}"), "\n".join([*said, *gap])


def _promise(by: str, helpers: int, among: Sequence[Mapping[str, Any]]) -> str:
    """One part's promise, for all units for which it makes it."""
    units = [one["unit"] for one in among if (one["by"], one["colluding"]) == (by, helpers) and one["unit"]]
    whose = f", per {' or '.join(units)}" if units else ""
    helped = {0: "if no party helps", 1: "even if one party helps"}.get(helpers, f"even if {helpers} parties help")
    return f"{by}{whose}, {helped}"


def _results(asked: Mapping[str, Any]) -> list[str]:
    """What tried it, and below it how that ended; then what plans would still try."""
    done = ["\n".join((_titled(one, asked["tried_by"]), *_ended(one))) for one in asked["tried_by"]]
    done += [
        "\n".join((LIES, _shown(one["verdict"]) + escape(lies_in_words(one)), *_aged(one["stale"]))) for one in asked["lies"]
    ]
    plans: dict[str, list[str]] = {}
    for one in asked["planned"]:
        plans.setdefault(one["attack"], []).append(one["plan"])
    waiting = [escape(f"{attack} (plan {', '.join(names)}): no result is kept") for attack, names in plans.items()]
    return done + waiting or [NEVER]


def _titled(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """The attack's name with what it is about."""
    return f"[bold]{escape(_by(one, among))}[/bold]" + (escape(f": {one['title']}") if one["title"] else "")


def _aged(reasons: Sequence[str]) -> list[str]:
    return [f"[dim]{escape(stale_in_words(reasons))}[/dim]"] if reasons else []


def _by(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """The attack and the model, with what was set of them; the run's whole setting where only that tells two apart."""
    helped = f", {one['helpers']} helping" if one["helpers"] else ""
    alike = [other for other in among if (other["attack"], other["model"]) == (one["attack"], one["model"])]
    whole = one["setting"] if len(alike) > 1 else ""
    told = [f"{name.removeprefix('model.')} = {value}" for name, value in one["settings"].items()]
    said = "; ".join(part for part in (whole, ", ".join(part for part in told if part not in whole)) if part)
    return f"{one['attack']}, {one['model']}{helped}" + (f" ({said})" if said else "")


def _ended(one: Mapping[str, Any]) -> tuple[str, ...]:
    """The verdict with its figures, and what changed since in a line of its own."""
    figure = escape(f": {one['shown']} {one['measure']}, {one['date']}")
    why = escape(f"; {one['why']}") if one["verdict"] == NOT_TESTED else ""
    return _shown(one["verdict"]) + figure + why, *_aged(one["stale"])


def _shown(verdict: str) -> str:
    return f"[bold]{verdict}[/bold]" if verdict == REFUTED else verdict


def _sentence(facts: Mapping[str, Any]) -> Text:
    """How the profile stands against its own threat model."""
    own = facts["threat_models"][0]
    if facts["refusals"].get("not_held"):
        named = "; ".join(facts["refusals"]["not_held"])
        return Text(f"NOT HELD: parties should have refused {named}.", style="bold red")
    if facts["refuted_claims"]:
        named = ", ".join(f"“{claim}”" for claim in facts["refuted_claims"])
        return Text(f"Refuted by our own attacks: {named}, which this profile claims.", style="bold red")
    if own["gaps"]:
        return Text(
            f"{counted(own['gaps'], 'gap')}: {own['name']} requires what this profile does not claim.", style="bold red"
        )
    asked = [wanted for adversary in own["adversaries"] for wanted in adversary["required"]]
    untried = sum(wanted["result"] in (NEVER, NOT_TESTED) for wanted in asked)
    if not asked:
        return Text(f"{own['name']} requires nothing of a profile.")
    return Text(
        f"Every claim that {own['name']} requires is made; {len(asked) - untried} of {len(asked)} were tried{_helped(asked)}, "
        "none refuted."
    )


def _helped(asked: Sequence[Mapping[str, Any]]) -> str:
    """Said where no fresh result has as many helpers as the claim has to bear."""
    fresh = {id(one): [tried.get("helpers", 0) for tried in _all_on(one) if not tried["stale"]] for one in asked}
    less = [one for one in asked if fresh[id(one)] and max(fresh[id(one)]) < one["colluding"]]
    return ", some of them with fewer helpers than are feared" if less else ""


def _all_on(asked: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Attacks and lies alike; nobody helps who lies."""
    return [*asked["tried_by"], *asked["lies"]]
