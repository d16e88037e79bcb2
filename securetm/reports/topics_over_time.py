"""Topics by date in the terminal: a line of bars for each topic. It computes no share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.markup import escape
from rich.table import Column, Table

from securetm.contracts import Array
from securetm.federation.topics_by_date import TopicsByDate
from securetm.reports.terminal import titled
from securetm.wording import counted

_BARS = "▁▂▃▄▅▆▇█"
_NO_DOCUMENT = " "
_LEAST, _BESIDE = 12, 46  # characters of a line of bars at least, and of all else in the table


def over_time_table(
    over_time: TopicsByDate, topics: Sequence[Sequence[str]], labels: Mapping[int, str], width: int = 80
) -> Table:
    """A row for each topic: its line of bars, from its least to its largest share, and when that is."""
    each = merged_periods(over_time, max(_LEAST, width - _BESIDE))
    documents = counted(int(over_time.documents.sum()), "document")
    if not len(each):
        return titled(f"Topics by {over_time.period}: no document has a known word")
    ends = f"{over_time.periods[0]} to {over_time.periods[-1]}"
    several = -(-len(over_time.periods) // len(each))
    merged = f" A bar stands for {counted(several, over_time.period)}." if several > 1 else ""
    caption = f"A bar is a topic's share of the documents at that time; the highest is its most. No bar: no document.{merged}"
    bars = Column(ends, no_wrap=True, min_width=len(each))
    table = titled(
        f"Topics by {over_time.period}, {documents}",
        Column("", justify="right"),
        Column("topic", overflow="fold"),
        bars,
        Column("most", justify="right", no_wrap=True),
        Column("in", no_wrap=True),
        caption=caption,
    )
    for place, words in enumerate(topics):
        peak = int(np.nanargmax(over_time.shares[:, place]))
        named = escape(labels.get(place) or " ".join(words[:3]))
        most = f"{over_time.shares[peak, place]:.0%}"
        table.add_row(str(place + 1), named, line_of_bars(each[:, place]), most, over_time.periods[peak])
    return table


def merged_periods(over_time: TopicsByDate, most: int) -> Array:
    """The shares of at most so many stretches of time, by topic: neighbouring periods are averaged over their documents."""
    several = -(-len(over_time.periods) // most) or 1
    starts = np.arange(0, len(over_time.periods), several)
    weights = over_time.documents[:, None]
    sums = np.add.reduceat(np.nan_to_num(over_time.shares) * weights, starts) if len(starts) else over_time.shares
    counts = np.add.reduceat(over_time.documents, starts)[:, None] if len(starts) else weights
    means: Array = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def line_of_bars(shares: Array) -> str:
    """One character for each share, from none to the largest of them."""
    most = max(float(np.nanmax(shares)), 1e-12)
    heights = np.rint(np.nan_to_num(shares) / most * (len(_BARS) - 1)).astype(int)
    return "".join(_NO_DOCUMENT if share != share else _BARS[height] for share, height in zip(shares, heights, strict=True))
