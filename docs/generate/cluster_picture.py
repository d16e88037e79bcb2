"""Draws seconds of a round by number of workers, as SVG with logarithmic axes. It computes no figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10

_STYLE = """
.drawn { --ink: #1b2733; --soft: #5b6b7a; --line: #94a3b1; --back: #f3f6f8; --a: #0f766e; --b: #1d4ed8; --c: #b45309; }
@media (prefers-color-scheme: dark) { .drawn { --ink: #e6edf3; --soft: #a3b1be; --line: #66778a; --back: #131b24;
  --a: #5eead4; --b: #93c5fd; --c: #fbbf24; } }
.drawn text { fill: var(--ink); font-size: 15px; }
.drawn .small { fill: var(--soft); font-size: 14px; }
.drawn .grid { stroke: var(--line); stroke-width: 0.6; opacity: 0.6; }
.drawn .curve { fill: none; stroke-width: 2.4; }
.drawn .even { fill: none; stroke-width: 1.4; stroke-dasharray: 3 5; }
"""
_COLOURS = ("var(--a)", "var(--b)", "var(--c)")
_LEFT, _TOP, _WIDE, _HIGH, _RIGHT, _BELOW = 84, 58, 500, 300, 250, 62


@dataclass(frozen=True)
class Curve:
    """A line of the picture: its name, and its points (workers, seconds)."""

    name: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class _Axes:
    """Where workers and seconds lie."""

    workers: tuple[float, float]
    seconds: tuple[float, float]

    def at(self, workers: float, seconds: float) -> tuple[float, float]:
        """The place of a point."""
        return (
            round(_LEFT + _WIDE * _share(workers, self.workers), 1),
            round(_TOP + _HIGH * (1 - _share(seconds, self.seconds)), 1),
        )


def _share(value: float, ends: tuple[float, float]) -> float:
    return (log10(value) - log10(ends[0])) / (log10(ends[1]) - log10(ends[0]))


def drawn(title: str, curves: Sequence[Curve], told: str) -> str:
    """The drawing: each curve, and dotted what it would be if workers shared the work evenly and nothing else took time."""
    every = [second for curve in curves for _, second in curve.points]
    low, high = min(every), max(every)
    ends = [point[0] for point in curves[0].points]
    axes = _Axes((ends[0], ends[-1]), (low / 2, high * 1.3))
    width, height = _LEFT + _WIDE + _RIGHT, _TOP + _HIGH + _BELOW
    fonts = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    head = f'<svg class="drawn" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
    named = f'aria-labelledby="cluster-title cluster-text" font-family="{fonts}">'
    texts = f'<title id="cluster-title">{escape(title)}</title>\n<desc id="cluster-text">{escape(told)}</desc>'
    back = f'<rect x="0" y="0" width="{width}" height="{height}" rx="14" fill="var(--back)"/>'
    parts = [*_grid(axes, ends), *(line for number, curve in enumerate(curves) for line in _curve(axes, number, curve))]
    clip = f'<clipPath id="cluster-clip"><rect x="{_LEFT}" y="{_TOP}" width="{_WIDE}" height="{_HIGH}"/></clipPath>'
    return "\n".join([head + named, texts, f"<style>{_STYLE}</style>", clip, back, *parts, "</svg>"]) + "\n"


def _grid(axes: _Axes, workers: Sequence[int]) -> Iterator[str]:
    yield f'<text x="{_LEFT - 60}" y="32">seconds a round</text>'
    bottom = _TOP + _HIGH
    second = 10.0 ** ceil(log10(axes.seconds[0]))
    while second <= axes.seconds[1]:
        y = axes.at(axes.workers[0], second)[1]
        yield f'<path class="grid" d="M{_LEFT} {y}H{_LEFT + _WIDE}"/>'
        yield f'<text class="small" x="{_LEFT - 10}" y="{y + 5}" text-anchor="end">{second:,.0f}</text>'
        second *= 10
    for number in workers:
        x = axes.at(number, axes.seconds[0])[0]
        yield f'<path class="grid" d="M{x} {_TOP}V{bottom}"/>'
        yield f'<text class="small" x="{x}" y="{bottom + 22}" text-anchor="middle">{number:,}</text>'
    yield f'<text x="{_LEFT + _WIDE / 2}" y="{bottom + 48}" text-anchor="middle">workers</text>'


def _curve(axes: _Axes, number: int, curve: Curve) -> Iterator[str]:
    colour = _COLOURS[number]
    first, seconds = curve.points[0]
    even = [axes.at(workers, seconds * first / workers) for workers, _ in curve.points]
    yield f'<path class="even" clip-path="url(#cluster-clip)" stroke="{colour}" d="{_path(even)}"/>'
    places = [axes.at(*point) for point in curve.points]
    yield f'<path class="curve" stroke="{colour}" d="{_path(places)}"/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>' for x, y in places)
    x, y = places[-1]
    for line, text in enumerate(curve.name.split("; ")):
        yield f'<text x="{x + 14}" y="{y + 5 + 19 * line}" style="fill: {colour}">{escape(text)}</text>'


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in places)
