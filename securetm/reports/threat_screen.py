"""`securetm threats` in the terminal: it prints the facts that reports/threat_tables.py collects, and judges nothing.

It fits eighty characters: the attacks stand beside a claim, and each result stands below its attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from securetm.leakage.audit_record import STANDING
from securetm.leakage.verdicts import BROKEN, HELD, NOT_TESTED, OPEN
from securetm.reports.audit_wording import CAUTION
from securetm.reports.terminal import titled
from securetm.reports.threat_refusals import LIES, lies_in_words, outside_claims, stale_in_words
from securetm.reports.threat_tables import NEVER
from securetm.wording import counted, upward


def show_threats(facts: Mapping[str, Any], to: Console) -> None:
    """A table for each adversary, what is accepted, and one sentence on how the profile stands."""
    to.print(Text(f"{facts['profile']}: {facts['title']}", style="bold"))
    for threats in facts["threat_models"]:
        own = "its threat model" if threats["own"] else "another threat model"
        to.print(f"\n[bold]{escape(threats['name'])}[/bold], {own}: {escape(threats['title'])}")
        for adversary in threats["adversaries"]:
            _show_adversary(adversary, to)
        for promised in (True, False):
            if accepted := [one for one in threats["accepts"] if one["promised"] is promised]:
                to.print(_accepts(accepted, promised=promised))
    required = (wanted for threats in facts["threat_models"] for one in threats["adversaries"] for wanted in one["required"])
    for sentence in outside_claims(facts["refusals"], any(wanted["lies"] for wanted in required)):
        to.print(sentence, markup=False)
    to.print(_sentence(facts))
    to.print(CAUTION)


def _show_adversary(adversary: Mapping[str, Any], to: Console) -> None:
    helpers = adversary["colludes_with_parties"]
    helped = f", helped by {counted(helpers, 'party', 'parties')}" if helpers else ""
    name = f"{adversary['adversary'].capitalize()} ({adversary['behaviour']}{helped})"
    who = f"{name}, sees: {', '.join(adversary['sees'])}"
    if not adversary["required"]:
        to.print(f"{escape(who)}. Nothing is required against it.")
        return
    table = _empty(who, "required, and who claims it")
    for wanted in adversary["required"]:
        _rows(table, "\n".join(_asked(wanted)), _results(wanted))
    to.print(table)


def _accepts(accepts: Sequence[Mapping[str, Any]], *, promised: bool) -> Table:
    """What the threat model would do without: promised by this profile all the same, or knowingly accepted that it may fail."""
    if promised:
        table = _empty("Not required, and promised by this profile all the same", "claim")
    else:
        table = _empty("Knowingly accepted that this may not hold", "claim, and the reason")
    for one in accepts:
        _rows(table, escape(f"“{one['claim']}”" + ("" if promised else f": {one['reason']}")), _results(one))
    return table


def _empty(title: str, asked: str) -> Table:
    """Two columns, wide enough for names of attacks at eighty characters."""
    ended = Column("what tried it, and how that ended", overflow="fold", ratio=4)
    return titled(escape(title), Column(asked, overflow="fold", ratio=2), ended, expand=True)


def _rows(table: Table, first: str, results: Sequence[str]) -> None:
    """One row for each result. `first` stands in the first row only."""
    for number, result in enumerate(results, start=1):
        table.add_row(first if number == 1 else "", result, end_section=number == len(results))


def _asked(wanted: Mapping[str, Any]) -> tuple[str, str]:
    unit = f" per {wanted['unit']}" if wanted["unit"] else ""
    alike = dict.fromkeys((one["by"], one["colluding"]) for one in wanted["claimed_by"])
    said = ["claimed by " + escape(_promise(by, helpers, wanted["claimed_by"])) for by, helpers in alike]
    gap = ["[bold red]GAP:[/bold red] " + escape(wanted["gap"])] if wanted["gap"] else []
    return escape(f"“{wanted['claim']}”{unit}"), "\n".join([*said, *gap])


def _promise(by: str, helpers: int, among: Sequence[Mapping[str, Any]]) -> str:
    """The promise of one part, with all its units."""
    units = [one["unit"] for one in among if (one["by"], one["colluding"]) == (by, helpers) and one["unit"]]
    whose = f", per {' or '.join(units)}" if units else ""
    helped = {0: "if no party helps", 1: "even if one party helps"}.get(helpers, f"even if {helpers} parties help")
    return f"{by}{whose}, {helped}"


def _results(asked: Mapping[str, Any]) -> list[str]:
    """Each attack with its result below it, then the attacks that plans would still run."""
    done = [_tried(one, asked["tried_by"]) for one in asked["tried_by"]]
    done += [_with_age(f"{LIES}\n{_shown(one[STANDING])}{escape(lies_in_words(one))}", one["stale"]) for one in asked["lies"]]
    plans: dict[str, list[str]] = {}
    for one in asked["planned"]:
        plans.setdefault(one["attack"], []).append(one["plan"])
    waiting = [escape(f"{attack} (plan {', '.join(names)}): no result is kept") for attack, names in plans.items()]
    return done + waiting or [NEVER]


def _tried(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """The attack with its title; below it the verdict with its figures, and what changed since."""
    title = escape(f": {one['title']}") if one["title"] else ""
    figure = escape(f": {one['shown']} {one['measure']}{_ideal(one)}, {one['date']}")
    why = escape(f"; {one['why']}") if one["verdict"] == NOT_TESTED else ""
    return _with_age(f"[bold]{escape(_name(one, among))}[/bold]{title}\n{_shown(one[STANDING])}{figure}{why}", one["stale"])


def _ideal(one: Mapping[str, Any]) -> str:
    """Beside a failure, what an attacker who is never wrong would have reached, and against which epsilon it was."""
    if one[STANDING] != HELD:
        return ""
    at = f", at epsilon {upward(one['epsilon'])}" if one["epsilon"] is not None else ""
    return f"; {one['ideal']}{at}" if one["ideal"] else at


def _with_age(text: str, reasons: Sequence[str]) -> str:
    return f"{text}\n[dim]{escape(stale_in_words(reasons))}[/dim]" if reasons else text


def _name(one: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> str:
    """The attack and the model with their settings; with the run's whole setting if two results differ in that alone."""
    helped = f", {one['helpers']} helping" if one["helpers"] else ""
    alike = [other for other in among if (other["attack"], other["model"]) == (one["attack"], one["model"])]
    whole = one["setting"] if len(alike) > 1 else ""
    told = [f"{name.removeprefix('model.')} = {value}" for name, value in one["settings"].items()]
    said = "; ".join(part for part in (whole, ", ".join(part for part in told if part not in whole)) if part)
    return f"{one['attack']}, {one['model']}{helped}" + (f" ({said})" if said else "")


def _shown(standing: str) -> str:
    return f"[bold]{standing}[/bold]" if standing in (BROKEN, OPEN) else standing


def _sentence(facts: Mapping[str, Any]) -> Text:
    """How the profile stands against its own threat model."""
    own = facts["threat_models"][0]
    if facts["refusals"].get("not_held"):
        named = "; ".join(facts["refusals"]["not_held"])
        return Text(f"NOT HELD: parties should have refused {named}.", style="bold red")
    if facts["refuted_claims"]:
        named = ", ".join(f"“{claim}”" for claim in facts["refuted_claims"])
        return Text(f"Broken by our own attacks: {named}, which this profile claims.", style="bold red")
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
        "none broken by these attacks, at the effort and the epsilons of these trials."
    )


def _helped(asked: Sequence[Mapping[str, Any]]) -> str:
    """A remark if the fresh results on some claim all have fewer helpers than the claim must withstand."""
    for one in asked:  # a lie has no helpers
        fresh = [tried.get("helpers", 0) for tried in (*one["tried_by"], *one["lies"]) if not tried["stale"]]
        if fresh and max(fresh) < one["colluding"]:
            return ", some of them with fewer helpers than are feared"
    return ""
