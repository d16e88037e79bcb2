"""The topics of a run in the terminal: labels, words, and a bar for each topic's share. It computes no share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Column, Table

from securetm.contracts import Array
from securetm.reports.noise_marks import Marks, noise_said, with_marks
from securetm.reports.terminal import titled

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDE = 8  # characters of the longest bar


def topics_table(
    topics: Sequence[Sequence[str]],
    labels: Mapping[int, str],
    shares: Array | None = None,
    shares_of: str = "",
    *,
    above_noise: Marks | None = None,
    noised: bool = False,
) -> Table:
    """Numbered topics. A label stands above a topic's words. Where shares are known, bars show them.

    Words that do not stand above the noise are marked, where that was tested.
    """
    caption = f"Share: how much of {shares_of} a topic takes. " if shares is not None else ""
    caption += noise_said(above_noise, noised)
    heads = "label, and top words" if labels else "top words"
    table = titled("", Column("", justify="right"), Column(heads, overflow="fold"), caption=caption)
    if shares is not None:
        table.add_column("share", no_wrap=True)
    most = 0.0 if shares is None else float(shares.max())
    for place, words in enumerate(topics):
        label = f"[bold]{escape(labels[place])}[/bold]\n" if place in labels else ""
        share = () if shares is None else (f"{bar(float(shares[place]), most)} {shares[place]:5.1%}",)
        table.add_row(str(place + 1), label + with_marks(words, None if above_noise is None else above_noise[place]), *share)
    return table


def bar(share: float, most: float) -> str:
    """A bar of blocks, as long as the share is of the largest one, to an eighth of a character."""
    eighths = round(8 * _WIDE * share / max(most, 1e-9))
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_WIDE)
