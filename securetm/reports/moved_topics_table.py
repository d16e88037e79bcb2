"""How far topics moved since an earlier model, in the terminal. It computes no distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from securetm.reports.terminal import titled

_CAPTION = (
    "Moved: the Hellinger distance between a topic's words then and now, from 0 (the same) to 1 (no word in common). Words "
    "are those that came into its ten heaviest, or left them."
)


def moved_table(moved: Sequence[Mapping[str, Any]], topics: Sequence[Sequence[str]], labels: Mapping[int, str]) -> Table:
    """A row for each topic: how far it moved, and which words came and went."""
    columns = (Column("", justify="right"), Column("topic", overflow="fold"), Column("moved", justify="right"))
    words = (Column("came", overflow="fold"), Column("gone", overflow="fold"))
    table = titled("Since the model that this run went on from", *columns, *words, caption=_CAPTION)
    for row in moved:
        place = int(row["topic"])
        named = escape(labels.get(place) or " ".join(topics[place][:3]))
        far = "new" if row["distance"] is None else f"{row['distance']:.2f}"
        table.add_row(str(place + 1), named, far, escape(" ".join(row["came"])), escape(" ".join(row["gone"])))
    return table
