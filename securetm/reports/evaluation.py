"""What `securetm evaluate` and `securetm corpus` show, and which documents a run leaves out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from securetm.quality.evaluation import FREQUENCIES, Compared, Evaluation, Row
from securetm.quality.judged_topics import CONTROLS
from securetm.reports.document import Cell, Paragraph, Table, Words, items
from securetm.reports.terminal import show
from securetm.reports.texts import said
from securetm.wording import counted

_ARROWS = {"higher": "↑", "lower": "↓", "": ""}
_SAID = (
    "↑: higher is better, ↓: lower is. Random topics and clusters of the word vectors "
    "alone saw no document: what they reach is no merit of a model."
)


def show_evaluation(found: Evaluation, documents: str, to: Console) -> None:
    """Every figure beside its controls, the comparison with another model, and what is not there and why."""
    missing = [(row.needs, title) for row, title in zip(found.rows, _titles(found.rows), strict=True) if row.needs]
    missing += [(one.needs, f"difference of {one.title}") for one in found.compared if one.needs]
    reasons = dict.fromkeys(why for why, _ in missing)
    not_measured = [f"{', '.join(title for other, title in missing if other == why)}: {why}" for why in reasons]
    compared = [compared_table([one for one in found.compared if not one.needs])] if found.compared else []
    judged = Paragraph(f"{counted(len(found.topics), 'topic')} of {found.topics.name}, judged {documents}")
    measured = [row for row in found.rows if row.measured is not None]
    controls = [name for name in CONTROLS if any(name in row.controls for row in measured)]
    rows: list[tuple[str, ...]] = []
    for row in measured:
        beside = (_figure(row.controls.get(name)) for name in controls)
        value = _figure(row.measured.value) if row.measured else ""
        rows.append((row.title, value, _ends(row), *beside, f"{_ARROWS[row.better]} {_short(row.range)}"))
        if FREQUENCIES in row.controls:
            rows.append((f"  {FREQUENCIES}", _figure(row.controls[FREQUENCIES]), "", *[""] * len(controls), ""))
    columns = ("figure", "value", "95 % interval", *(name.replace(" ", "\n") for name in controls), "range")
    figures = Table(columns, tuple(rows), _SAID, numeric=range(1, len(columns) - 1), whole=range(len(columns) - 1))
    show((judged, figures, *compared, *items(not_measured, "Not measured")), to)


def _titles(rows: Sequence[Row]) -> Iterator[str]:
    """The title of each figure, as it is said outside the table, where one that stands under another is indented."""
    above = ""
    for row in rows:
        under = row.title.startswith(" ")
        yield f"{above} with {row.title.strip()}" if under else row.title
        above = above if under else row.title


def compared_table(rows: Sequence[Compared]) -> Table:
    """The differences of two models on the same documents."""
    caption = "Paired bootstrap over documents. A difference is sure (bold) where its interval leaves zero out."
    cells: list[tuple[Cell, ...]] = []
    for one in rows:
        apart, own, other = one.difference, _figure(one.mine), _figure(one.other)
        shown = Words(f"{apart.value:+.3g} [{apart.low:+.3g}, {apart.high:+.3g}]", "strong" if apart.sure else "")
        cells.append((one.title, own, other, (shown,), f"{apart.chance:.3f}", f"{one.documents:,}"))
    columns, title = ("", "this", "other", "difference", "chance", "documents"), "Difference of the two on the same documents"
    return Table(columns, tuple(cells), caption, title, numeric=range(1, 6))


def _short(ends: str) -> str:
    """The range in few characters."""
    return f"≥ {ends.split()[0]}" if ends.endswith("or more") else ends.replace(" to ", "…")


def _ends(row: Row) -> str:
    found = row.measured
    if found is None or found.low is None or found.high is None or not math.isfinite(found.low):
        return ""
    return f"{_figure(found.low)}–{_figure(found.high)}"


def _figure(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"


MOST_NAMES = 8  # in one sentence


def left_out_in_words(facts: Mapping[str, Any], unlisted: Mapping[str, int]) -> tuple[str, ...]:
    """Documents that were dropped, parties without documents, and documents that name no party.

    `unlisted` holds for each party the number of documents without a word of the public list, if there is one.
    """
    source, dropped = facts["source"], facts["dropped"]
    reasons: Counter[str] = Counter()
    for one in [*source["dropped"], *(one for each in dropped.values() for one in each)]:
        reasons[one["reason"]] += one["documents"]
    lost = {name: documents for name, each in dropped.items() if (documents := sum(one["documents"] for one in each))}
    named = _listed([f"{name} had {lost[name]:,}" for name in sorted(lost, key=lambda name: -lost[name])])
    gone = sorted({one["party"] for one in source["dropped"] if "party" in one})
    counts = (_listed(gone), len(gone)), sum(unlisted.values())
    return said("corpus.left_out", source, reasons.most_common(), named, *counts)


def _listed(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
