"""Draws a path of questions with yes and no, as SVG. It knows no question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

_STYLE = """
.drawn { --ink: #1b2733; --soft: #5b6b7a; --line: #94a3b1; --card: #ffffff; --back: #f3f6f8; --party: #0f766e;
  --leaf: #d5f0ec; }
@media (prefers-color-scheme: dark) { .drawn { --ink: #e6edf3; --soft: #a3b1be; --line: #66778a; --card: #1c2733;
  --back: #131b24; --party: #5eead4; --leaf: #12413d; } }
.drawn text { fill: var(--ink); font-size: 15px; }
.drawn .small { fill: var(--soft); font-size: 14px; }
.drawn .card { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
.drawn .leaf { fill: var(--leaf); stroke: var(--party); stroke-width: 1.4; }
.drawn .leaf-name { font-weight: 600; }
.drawn .way { fill: none; stroke: var(--line); stroke-width: 1.6; }
"""
_TIP = (
    '<defs><marker id="path-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#94a3b1"/></marker></defs>'
)
_WIDE, _HIGH, _LEAF, _DOWN, _RIGHT, _EDGE = 296, 60, 138, 100, 486, 16
_TOTAL = 2 * _EDGE + _RIGHT + _WIDE + 32 + _LEAF


@dataclass(frozen=True)
class Leaf:
    """Where a path ends."""

    profile: str


@dataclass(frozen=True)
class Step:
    """A question in two lines, and where each answer leads."""

    first: str
    second: str
    yes: Step | Leaf
    no: Step | Leaf


@dataclass(frozen=True)
class _Place:
    """A corner of a card."""

    x: int
    y: int


def drawn(path: Step) -> str:
    """The drawing. One answer of a question goes on below it, the other to the right."""
    parts = list(_step(path, _Place(_EDGE, 20)))
    height = 20 + _DOWN * _rows(path) - (_DOWN - _HIGH) + 20
    head = f'<svg class="drawn" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_TOTAL} {height}" role="img" '
    fonts = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    named = f'aria-labelledby="path-title path-text" font-family="{fonts}">'
    said = "Questions with yes and no that lead to a profile. The page has them as text and as a table."
    told = f'<title id="path-title">Which profile do I need?</title>\n<desc id="path-text">{said}</desc>'
    back = f'<rect x="0" y="0" width="{_TOTAL}" height="{height}" rx="14" fill="var(--back)"/>'
    return "\n".join([head + named, told, f"<style>{_STYLE}</style>", _TIP, back, *parts, "</svg>"]) + "\n"


def _rows(part: Step | Leaf) -> int:
    """How many rows a part of the path takes."""
    if isinstance(part, Leaf):
        return 1
    right, below = _sides(part)
    return max(_rows(right[1]), 1 + _rows(below[1]))


def _sides(step: Step) -> tuple[tuple[str, Step | Leaf], tuple[str, Step | Leaf]]:
    """What goes to the right, and what goes below: the longer way goes below, unless both are long."""
    yes, no = ("yes", step.yes), ("no", step.no)
    return (no, yes) if isinstance(step.no, Leaf) and not isinstance(step.yes, Leaf) else (yes, no)


def _step(step: Step, at: _Place) -> Iterator[str]:
    right, below = _sides(step)
    yield f'<rect class="card" x="{at.x}" y="{at.y}" width="{_WIDE}" height="{_HIGH}" rx="8"/>'
    for line, text in enumerate((step.first, step.second)):
        yield f'<text x="{at.x + 16}" y="{at.y + 26 + 20 * line}">{escape(text, quote=False)}</text>'
    yield from _to_the_right(right[0], right[1], at)
    down = _Place(at.x, at.y + _DOWN)
    yield f'<path class="way" d="M{at.x + 50} {at.y + _HIGH}V{down.y - 2}" marker-end="url(#path-tip)"/>'
    yield f'<text class="small" x="{at.x + 58}" y="{at.y + _HIGH + 24}">{below[0]}</text>'
    yield from _part(below[1], down)


def _to_the_right(said: str, part: Step | Leaf, at: _Place) -> Iterator[str]:
    edge, middle = at.x + _WIDE, at.y + _HIGH // 2
    yield f'<text class="small" x="{edge + 5}" y="{middle - 8}">{said}</text>'
    if isinstance(part, Leaf):
        yield f'<path class="way" d="M{edge} {middle}H{edge + 30}" marker-end="url(#path-tip)"/>'
        yield from _leaf(part, _Place(edge + 32, middle - 18))
        return
    over = at.x + _RIGHT
    yield f'<path class="way" d="M{edge} {middle}H{over - 2}" marker-end="url(#path-tip)"/>'
    yield from _step(part, _Place(over, at.y))


def _part(part: Step | Leaf, at: _Place) -> Iterator[str]:
    return _leaf(part, _Place(at.x, at.y)) if isinstance(part, Leaf) else _step(part, at)


def _leaf(leaf: Leaf, at: _Place) -> Iterator[str]:
    name = leaf.profile
    yield f'<a href="profiles/{name}.html"><rect class="leaf" x="{at.x}" y="{at.y}" width="{_LEAF}" height="36" rx="18"/>'
    yield f'<text class="leaf-name" x="{at.x + _LEAF // 2}" y="{at.y + 24}" text-anchor="middle">{name}</text></a>'
