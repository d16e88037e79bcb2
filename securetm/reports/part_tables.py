"""Every part that a plan, a profile or a party's file can name, as plain records and as a table. It imports no part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from securetm.aggregation import AGGREGATIONS
from securetm.corpus.readers import READERS
from securetm.engines import ENGINES
from securetm.leakage.attacks import ATTACKS
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.registries import OURS, Registry, unreadable_packages

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.contracts import Profile

REGISTRIES = {
    "models": MODELS,
    "mechanisms": MECHANISMS,
    "aggregations": AGGREGATIONS,
    "attacks": ATTACKS,
    "corpus_readers": READERS,
    "engines": ENGINES,
}


def listed_parts() -> dict[str, list[dict[str, str]]]:
    """Name, package and place of each part, by kind."""
    return {
        kind: [{"name": part.name, "package": part.package, "place": part.place} for part in registry.listed()]
        for kind, registry in REGISTRIES.items()
    }


def parts_of(profile: Profile) -> list[tuple[Registry, str, Any]]:
    """The registry and the name of each part of a profile, and the part itself, in the profile's order."""
    parts: list[tuple[Registry, Any]] = [(AGGREGATIONS, profile.aggregation)]
    parts += [(MECHANISMS, part) for part in profile.mechanisms]
    return [(registry, registry.name_of(part), part) for registry, part in parts]


def unusable_parts() -> list[dict[str, str]]:
    """The declared parts of other packages that cannot be used, and the packages that cannot be read, each with the reason.

    The parts of other packages are imported to find out.
    """
    parts = [
        {"kind": kind, "name": part.name, "package": part.package, "place": part.place, "problem": problem}
        for kind, registry in REGISTRIES.items()
        for part, problem in registry.unusable()
    ]
    unread = unreadable_packages()
    return parts + [{"kind": "", "name": "", "package": name, "place": "", "problem": problem} for name, problem in unread]


def show_parts(facts: Mapping[str, Any], unusable: list[dict[str, str]], to: Console) -> None:
    """One row for each kind, where a part of another package is named with its package; then what cannot be used."""
    from rich.markup import escape
    from rich.table import Column

    from securetm.reports.terminal import titled

    table = titled("", Column("kind", no_wrap=True), Column("parts", overflow="fold"), show_lines=True)
    for kind, parts in facts.items():
        names = (one["name"] + ("" if one["package"] == OURS else f" (of {one['package']})") for one in parts)
        table.add_row(kind.replace("_", " "), escape(", ".join(names)))
    to.print(table)
    for one in unusable:
        to.print(f"Not usable, of the package {one['package']}: {one['problem']}.", style="yellow", markup=False)
