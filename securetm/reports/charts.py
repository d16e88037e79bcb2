"""Figures: braille in the terminal, and inline SVG on a page, drawn by matplotlib.

Curves differ by their dashes and letters, so no colour is needed to distinguish them.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from securetm.data_classes import dataclass
from securetm.figures import Curve, Figure
from securetm.foreign_text import html_text
from securetm.reports.document import letter

_DASHES = ((), (9, 5), (2, 5), (12, 4, 2, 4), (16, 8))  # of a page's curves, in order: on, off
_GAPS = ((1, 0), (5, 4), (1, 3), (7, 2), (2, 6))  # of the terminal's: dots on, dots off
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # the bits of a braille cell, by column and row
_MARK = "●"


@dataclass(frozen=True)
class Axis:
    """From zero to a round number, with round steps."""

    top: float
    step: float

    def ticks(self) -> list[float]:
        """The marks on the axis."""
        return [n * self.step for n in range(round(self.top / self.step) + 1)]

    def share(self, value: float) -> float:
        """Where on the axis a value lies, from 0 to 1."""
        return min(max(value / self.top, 0.0), 1.0)


def axis(largest: float, marks: int = 5) -> Axis:
    """An axis that holds the largest value, with about this many marks."""
    rough = max(largest, 1e-9) / marks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))
    return Axis(step * math.ceil(largest / step - 1e-9) or step, step)


def axes_of(figure: Figure) -> tuple[Axis, Axis]:
    """Both axes of a figure; those of a square one are alike."""
    points = [(x, y) for line in figure.curves for x, y in line.points if math.isfinite(y)] or [(1e-3, 1e-3)]
    across, up = max(x for x, _ in points), max(y for _, y in points)
    return (axis(max(across, up), 4),) * 2 if figure.square else (axis(across), axis(up, 4))


def axis_mark(value: float) -> str:
    """A mark on an axis: 2,500 or 0.25."""
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.10g}"


# ---- the terminal --------------------------------------------------------------------------------------------------


def in_terminal(figure: Figure, width: int, height: int = 10) -> str:
    """The figure as text of this width. A braille cell holds two by four dots."""
    across, up = axes_of(figure)
    labels = {round((1 - up.share(tick)) * (height - 1)): axis_mark(tick) for tick in up.ticks()}
    margin = max(map(len, labels.values())) + 2
    room = max(width - margin - 1, 10)
    cells = enumerate(_cells(figure, across, up, room, height))
    rows = [f"{labels.get(n, ''):>{margin - 1}} {'┤' if n in labels else '│'}{row}".rstrip() for n, row in cells]
    head = " " * (margin - 1) + figure.y
    return "\n".join((head, *rows, *_ground(across, margin, room), " " * margin + f" {figure.x}", *_legend(figure, margin)))


def _cells(figure: Figure, across: Axis, up: Axis, width: int, height: int) -> list[str]:
    grid = [[0] * width for _ in range(height)]
    for order, line in enumerate(figure.curves):
        on, off = _GAPS[order % len(_GAPS)]
        for count, (x, y) in enumerate(_trace(line, across, up, 2 * width - 1, 4 * height - 4)):
            if count % (on + off) < on:
                # the lowest mark lies in the middle of the last row, as the labels do
                grid[y // 4][x // 2] |= _DOTS[x % 2][y % 4]
    text = [[chr(0x2800 + bits) if bits else " " for bits in row] for row in grid]
    if figure.marked is not None:
        at, value = figure.marked
        text[round((1 - up.share(value)) * (height - 1))][round(across.share(at) * (width - 1))] = _MARK
    return ["".join(row) for row in text]


def _trace(line: Curve, across: Axis, up: Axis, width: int, height: int) -> Iterator[tuple[int, int]]:
    """Every dot of a curve, without gaps; the first row of dots is on top."""
    places = [(across.share(x) * width, 2 + (1 - up.share(y)) * height) for x, y in line.points if math.isfinite(y)]
    last: tuple[int, int] | None = None
    for (x0, y0), (x1, y1) in pairwise(places):
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            dot = (round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps))
            if dot != last:
                yield dot
            last = dot


def _ground(across: Axis, margin: int, room: int) -> tuple[str, str]:
    """The lower axis and its marks."""
    edge, marks = ["─"] * room, [" "] * (room + margin + 8)
    for tick in across.ticks():
        place = round(across.share(tick) * (room - 1))
        edge[place] = "┬"
        text = axis_mark(tick)
        begin = min(max(margin + 1 + place - len(text) // 2, 0), margin + 1 + room - len(text))
        if all(mark == " " for mark in marks[max(begin - 1, 0) : begin + len(text) + 1]):
            marks[begin : begin + len(text)] = text
    return " " * margin + "└" + "".join(edge), "".join(marks).rstrip()


def _legend(figure: Figure, margin: int) -> list[str]:
    samples = ("⠤⠤⠤⠤", "⠤⠄⠠⠤", "⠄⠄⠄⠄", "⠤⠤⠤ ")
    lines = figure.curves if len(figure.curves) > 1 else ()
    named = [f"{samples[n % len(samples)]}  {line.name}" for n, line in enumerate(lines)]
    marked = [f"{_MARK}     {figure.mark}"] if figure.marked is not None else []
    return [" " * (margin + 1) + row for row in (*named, *marked)]


# ---- the page ------------------------------------------------------------------------------------------------------

_WIDE, _SQUARE = (760, 340, (0.08, 0.14, 0.89, 0.76)), (470, 430, (0.13, 0.12, 0.81, 0.8))  # pixels, and the place of the axes
_INK, _RULE, _PAPER, _LINE, _SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"  # colours of `static/page.css`
_COLOURS = {_INK: "ink", _RULE: "rule", _PAPER: "paper", _LINE: "line", _SECOND: "second"}
_NEEDLESS = r' id="[^"]*"| clip-path="[^"]*"|<defs>.*?</defs>| transform="rotate\(-0 [^"]*"|font-family: [^;"]*;? ?'
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "securetm",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that places are the same everywhere; a page shows its own letters
    "font.size": 12,
    "text.parse_math": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size", "xtick.minor.size", "ytick.minor.size"), 0),
    "axes.facecolor": "none",
    "grid.color": _RULE,
}


def in_svg(figure: Figure) -> str:
    """The figure as inline SVG in the colours of its page: no script, no font or file from anywhere else."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Drawing

    wide, tall, place = _SQUARE if figure.square else _WIDE
    drawn = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        drawing = Drawing(figsize=(wide / 72, tall / 72), dpi=72, facecolor="none")
        axes = drawing.add_axes(place)
        _scale(axes, figure)
        if figure.diagonal:
            axes.plot([0, 1], [0, 1], ":", color=_INK, linewidth=1, transform=axes.transAxes)
            axes.text(0.32, 0.27, figure.diagonal, rotation=45, ha="center", va="center", transform=axes.transAxes)
        if figure.allowed is not None:
            _draw(axes, figure.allowed, "ε", 0.25, color=_INK, linestyle=(0, (1, 2)))
        for order, line in enumerate(figure.curves):
            named = letter(order) if len(figure.curves) > 1 or figure.square else ""
            kind = {"color": (_LINE, _SECOND, _INK)[order % 3], "linestyle": (0, _DASHES[order % len(_DASHES)] or None)}
            _draw(axes, line, named, (order + 0.5) / len(figure.curves), **kind)
            if figure.square and not figure.decades and len(line.points) > 1:
                _dots(axes, line.points, 4)
        if figure.marked is not None:
            _dots(axes, (figure.marked,), 5.5)
        FigureCanvasSVG(drawing).print_svg(drawn, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    inner = _inline(drawn.getvalue())
    title = html_text(figure.title)
    return f'<svg class="plot" viewBox="0 0 {wide} {tall}" role="img" aria-label="{title}"><title>{title}</title>{inner}</svg>'


def _scale(axes: Any, figure: Figure) -> None:
    """The axes with their marks and names."""
    from matplotlib.ticker import NullLocator

    if figure.decades:
        ticks = [10.0**n for n in range(figure.decades, 1)]
        names = [f"{100 * tick:g}\N{NO-BREAK SPACE}%" for tick in ticks]
        axes.set(xscale="log", yscale="log", xlim=(ticks[0], 1), ylim=(ticks[0], 1))
        for one in (axes.xaxis, axes.yaxis):
            one.set_ticks(ticks, names)
            one.set_minor_locator(NullLocator())
    else:
        for one, put, found in zip((axes.xaxis, axes.yaxis), (axes.set_xlim, axes.set_ylim), axes_of(figure), strict=True):
            one.set_ticks(found.ticks(), [axis_mark(tick) for tick in found.ticks()])
            put(0, found.top)
    axes.grid(axis="both" if figure.square else "y")
    axes.set_axisbelow(True)
    axes.set_xlabel(figure.x)
    axes.text(-0.06, 1.06, figure.y, transform=axes.transAxes)


def _draw(axes: Any, line: Curve, named: str, aim: float, **kind: Any) -> None:
    """A curve, and its letter at this share of its way from left to right."""
    import numpy as np

    least = axes.get_xlim()[0]
    points = np.array([(max(x, least), max(y, least)) for x, y in line.points if math.isfinite(x + y)])
    if not len(points):
        return
    places = axes.transData.transform(points).round(1)
    points = points[np.append(True, (np.diff(places, axis=0) != 0).any(axis=1))]  # a curve may have many thousand points
    axes.plot(*points.T, linewidth=2, clip_on=False, **kind)
    if named:
        shares = axes.transAxes.inverted().transform(axes.transData.transform(points))
        across = shares[0, 0] + aim * (shares[-1, 0] - shares[0, 0])
        ring = {"boxstyle": "circle,pad=0.25", "facecolor": _PAPER, "edgecolor": _INK}
        axes.text(
            across, np.interp(across, *shares.T), named, size=10, ha="center", va="center", transform=axes.transAxes, bbox=ring
        )


def _dots(axes: Any, points: Sequence[tuple[float, float]], radius: float) -> None:
    from matplotlib.patches import Circle

    for place in axes.transData.transform([point for point in points if math.isfinite(sum(point))]):
        style = {"facecolor": _LINE, "edgecolor": _PAPER, "clip_on": False, "zorder": 4}
        axes.add_artist(Circle(place, radius, transform=None, **style))


def _inline(drawn: str) -> str:
    """What stands within the drawing, with the page's own letters and colours, and places to a tenth of a pixel."""
    begin = drawn.index("</defs>", drawn.index("<style")) + len("</defs>")
    inner = re.sub(_NEEDLESS, "", drawn[begin : drawn.rindex("</svg>")], flags=re.DOTALL)
    inner = re.sub(r'="[^"]*"', lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]).replace("\n", ""), inner)
    for colour, name in _COLOURS.items():
        inner = inner.replace(colour, f"var(--{name})")
    return re.sub(r"\n\s*", "", inner)
