"""Every part that can be named, as plain records and as a table. It imports no part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from securetm.aggregation import AGGREGATIONS
from securetm.corpus.readers import READERS
from securetm.leakage.attacks import ATTACKS
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.registries import OURS

if TYPE_CHECKING:
    from rich.console import Console

REGISTRIES = {
    "models": MODELS,
    "mechanisms": MECHANISMS,
    "aggregations": AGGREGATIONS,
    "attacks": ATTACKS,
    "corpus_readers": READERS,
}


def listed_parts() -> dict[str, list[dict[str, str]]]:
    """Name, package and place of each part, by kind."""
    return {
        kind: [{"name": part.name, "package": part.package, "place": part.place} for part in registry.listed()]
        for kind, registry in REGISTRIES.items()
    }


def show_parts(facts: Mapping[str, Any], to: Console) -> None:
    """One row for each kind; the parts of other packages say whose they are."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", show_lines=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("parts", overflow="fold")
    for kind, parts in facts.items():
        names = (one["name"] + ("" if one["package"] == OURS else f" (of {one['package']})") for one in parts)
        table.add_row(kind.replace("_", " "), escape(", ".join(names)))
    to.print(table)
