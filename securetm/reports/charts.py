"""Plots: braille in the terminal, inline SVG on a page. Lines differ by dashes and names, so no colour is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from securetm.accounting.calculator.budget_report import Plot, PlotLine
from securetm.foreign_text import html_text

_DASHES = ("", "9 5", "2 5", "12 4 2 4", "16 8")  # of the page's lines, in order

_GAPS = ((1, 0), (5, 4), (1, 3), (7, 2), (2, 6))  # of the terminal's lines: dots on, dots off

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


def axes_of(plot: Plot) -> tuple[Axis, Axis]:
    """Both axes of a plot."""
    points = [point for line in plot.lines for point in line.points if math.isfinite(point[1])]
    return axis(max(x for x, _ in points)), axis(max(y for _, y in points), 4)


def number(value: float) -> str:
    """A mark on an axis: 2,500 or 0.25."""
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:.10g}"


# ---- the terminal --------------------------------------------------------------------------------------------------


def in_terminal(plot: Plot, width: int, height: int = 10) -> str:
    """The plot as text of this width. A braille cell holds two by four dots."""
    across, up = axes_of(plot)
    labels = {round((1 - up.share(tick)) * (height - 1)): number(tick) for tick in up.ticks()}
    margin = max(map(len, labels.values())) + 2
    cells = _cells(plot, across, up, max(width - margin - 1, 10), height)
    rows = [f"{labels.get(n, ''):>{margin - 1}} {'┤' if n in labels else '│'}{row}".rstrip() for n, row in enumerate(cells)]
    room = max(width - margin - 1, 10)
    head = " " * (margin - 1) + plot.y
    return "\n".join((head, *rows, *_ground(across, margin, room), " " * margin + f" {plot.x}", *_legend(plot, margin)))


def _cells(plot: Plot, across: Axis, up: Axis, width: int, height: int) -> list[str]:
    grid = [[0] * width for _ in range(height)]
    for order, line in enumerate(plot.lines):
        on, off = _GAPS[order % len(_GAPS)]
        for count, (x, y) in enumerate(_trace(line, across, up, 2 * width - 1, 4 * height - 4)):
            if count % (on + off) < on:
                # the lowest mark lies in the middle of the last row, as the labels do
                grid[y // 4][x // 2] |= _DOTS[x % 2][y % 4]
    text = [[chr(0x2800 + bits) if bits else " " for bits in row] for row in grid]
    if plot.marked is not None:
        at, value = plot.marked
        text[round((1 - up.share(value)) * (height - 1))][round(across.share(at) * (width - 1))] = _MARK
    return ["".join(row) for row in text]


def _trace(line: PlotLine, across: Axis, up: Axis, width: int, height: int) -> Iterator[tuple[int, int]]:
    """Every dot of a line, without gaps; the first row of dots is on top."""
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
        text = number(tick)
        begin = min(max(margin + 1 + place - len(text) // 2, 0), margin + 1 + room - len(text))
        if all(mark == " " for mark in marks[max(begin - 1, 0) : begin + len(text) + 1]):
            marks[begin : begin + len(text)] = text
    return " " * margin + "└" + "".join(edge), "".join(marks).rstrip()


def _legend(plot: Plot, margin: int) -> list[str]:
    samples = ("⠤⠤⠤⠤", "⠤⠄⠠⠤", "⠄⠄⠄⠄", "⠤⠤⠤ ")
    named = [f"{samples[n % len(samples)]}  {line.name}" for n, line in enumerate(plot.lines) if len(plot.lines) > 1]
    marked = [f"{_MARK}     {plot.mark}"] if plot.marked is not None else []
    return [" " * (margin + 1) + row for row in (*named, *marked)]


# ---- the page ------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 760, 360

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 34, 52  # the right margin holds the lines' names


def in_svg(plot: Plot) -> str:
    """The plot as inline SVG: no script, no font or file from anywhere else."""
    across, up = axes_of(plot)
    parts = [_frame(plot, across, up), *(_path(line, n, across, up) for n, line in enumerate(plot.lines))]
    parts += _names(plot.lines, across, up)
    if plot.marked is not None:
        x, y = _place(plot.marked, across, up)
        parts.append(f'<circle class="marked" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
    title = html_text(plot.title)
    opening = f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}" xmlns="http://www.w3.org/2000/svg">'
    return "\n".join((opening, f"<title>{title}</title>", *parts, "</svg>"))


def _place(point: tuple[float, float], across: Axis, up: Axis) -> tuple[float, float]:
    x = _LEFT + across.share(point[0]) * (_WIDTH - _LEFT - _RIGHT)
    return x, _HEIGHT - _BOTTOM - up.share(point[1]) * (_HEIGHT - _TOP - _BOTTOM)


def _frame(plot: Plot, across: Axis, up: Axis) -> str:
    right, ground = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for tick in up.ticks():
        y = _place((0, tick), across, up)[1]
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in across.ticks():
        x = _place((tick, 0), across, up)[0]
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{ground}" y2="{ground + 5}"/>')
        parts.append(f'<text x="{x:.1f}" y="{ground + 20}" text-anchor="middle">{number(tick)}</text>')
    parts.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{ground}H{right}"/>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">{html_text(plot.x)}</text>')
    parts.append(f'<text x="12" y="18">{html_text(plot.y)}</text>')
    return "\n".join(parts)


def _path(line: PlotLine, order: int, across: Axis, up: Axis) -> str:
    places = (_place(point, across, up) for point in line.points if math.isfinite(point[1]))
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f'<path class="line{order}" d="M{way}"{dashes(order)}/>'


def dashes(order: int) -> str:
    """The attribute that draws the line of this order with its own dashes."""
    pattern = _DASHES[order % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _names(lines: Sequence[PlotLine], across: Axis, up: Axis) -> list[str]:
    """Each line's name at its end. Names that would overlap are moved apart."""
    ends = [(_place(line.points[-1], across, up), line.name) for line in lines if line.points]
    texts, above = [], 0.0
    for (_, y), name in sorted(ends, key=lambda end: end[0][1]):
        above = max(y + 4, above + 16)
        texts.append(f'<text class="name" x="{_WIDTH - _RIGHT + 8}" y="{above:.1f}">{html_text(name)}</text>')
    return texts
