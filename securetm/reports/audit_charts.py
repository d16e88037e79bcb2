"""The plots of an audit as inline SVG: results on strips, curves on a plane. They draw records and compute nothing.

Lines are told apart by a letter on the line and by their dashes, never by colour alone; each plot has its numbers beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Protocol

from securetm.leakage.findings import Finding, Measured
from securetm.leakage.illustrations import Curve
from securetm.leakage.verdicts import NOT_TESTED
from securetm.reports.audit_markup import Html, grid, joined
from securetm.reports.findings import EPSILON, NUMBER, SHARE, figure, scale_of, shown
from securetm.reports.plots import DASHES, axis, number

ROC, EMPIRICAL = "roc", "epsilon"  # kinds of curves (leakage/attack.py)
_CHANCE = "chance"  # a line that every plot has
_WHOLE = ("document", "person", "party")  # what hides these hides whether a document was there
_DOT = "Dot with a bar: what the attack reached, and its interval. Cross: the same attack on random numbers."
_CAPTIONS = {
    SHARE: f"{_DOT} Upright stroke: the interval must begin there or beyond for “refuted”. Open triangle: where the "
    "interval of an ideal attacker would begin; what stands on the right edge may lie beyond it.",
    EPSILON: f"{_DOT} Upright stroke: the epsilon that is claimed, or from which on something counts as refuted where none "
    "is. Open triangle: the most that an ideal attacker could show with as many tries. Refuted is what begins beyond the "
    "stroke. An arrow: it goes on beyond the edge.",
    NUMBER: f"{_DOT} Upright stroke: from here on it counts as refuted. Open triangle: the most that an ideal attacker could "
    "show with as many tries. An arrow: it goes on beyond the edge.",
}
_BEYOND = 4  # times the limit: an axis that reached further would no longer tell what lies about it
_SMALL = 0.1  # shares below it have an axis of their own, or nothing could be told apart on it


# ---- strips: one value with its interval in each line --------------------------------------------------------------


@dataclass(frozen=True)
class Strip:
    """One line of a chart: a label, a result, and what it stands beside."""

    label: Html
    measured: Measured
    chance: Measured | None = None
    limit: float | None = None  # from here on it counts as refuted


def strip_of(finding: Finding, label: Html) -> Strip:
    """A finding's own line."""
    return Strip(label, finding.measured, finding.chance, finding.refuted_from)


def strips(lines: Sequence[Strip], *, explained: bool = True) -> Html:
    """Results on one axis for each scale that is among them: shares, small shares, epsilons, other numbers."""
    kinds = [_kind(line, lines) for line in lines]
    groups = {kind: [line for line, own in zip(lines, kinds, strict=True) if own == kind] for kind in kinds}
    return joined(*(_on_one_scale(group, *kind, explained) for kind, group in groups.items()))


def _kind(line: Strip, lines: Sequence[Strip]) -> tuple[str, bool]:
    """The scale, and whether all results of this measure are small on it."""
    scale = scale_of(line.measured)
    alike = [one for one in lines if one.measured.measure == line.measured.measure and one.measured.value is not None]
    return scale, scale == SHARE and bool(alike) and all(_reach(one) < _SMALL for one in alike)


def _reach(line: Strip) -> float:
    return max(line.measured.high, line.limit or 0.0, _chance(line) or 0.0)


def _chance(line: Strip) -> float | None:
    return line.chance.value if line.chance is not None else line.measured.by_chance


def _on_one_scale(lines: Sequence[Strip], scale: str, small: bool, explained: bool) -> Html:
    top, ticks = _ticks(lines, scale, small)
    rows = "".join(f"<div>{line.label}</div><div class=strip>{_strip(line, scale, top, ticks)}</div>" for line in lines)
    names = "".join(
        f'<text x="{100 * tick / top:.2f}%" y="14" text-anchor="middle">{escape(_named(tick, scale))}</text>' for tick in ticks
    )
    foot = f'<div class=blank></div><div class=axis><svg class="plot" aria-hidden="true">{names}</svg></div>'
    caption = f"<figcaption class=note>{_CAPTIONS[scale]}</figcaption>" if explained else ""
    return Html(f"<figure><div class=strips>{rows}{foot}</div>{caption}</figure>")


def _ticks(lines: Sequence[Strip], scale: str, small: bool) -> tuple[float, list[float]]:
    """The end of the axis, and its marks."""
    if scale == SHARE and not small:
        return 1.0, [0, 0.25, 0.5, 0.75, 1.0]
    ends = [end for line in lines for end in (*_ends(line, small), line.limit or 0.0) if math.isfinite(end)]
    limit = max((line.limit or 0.0 for line in lines), default=0.0)
    most = min(max(ends), _BEYOND * limit) if limit and not small else max(ends)
    reach = axis(max(most, 1e-3), 4)
    return reach.top, reach.ticks()


def _ends(line: Strip, small: bool) -> tuple[float, ...]:
    found = line.measured
    ends = (found.value or 0.0, found.low, found.high, _chance(line) or 0.0)
    return ends if small else (*ends, found.ceiling)


def _named(tick: float, scale: str) -> str:
    return f"{100 * tick:.3g}\N{NO-BREAK SPACE}%" if scale == SHARE else number(tick)


def _strip(line: Strip, scale: str, top: float, ticks: Sequence[float]) -> str:
    def at(value: float) -> str:
        return f"{100 * min(max(value / top, 0.0), 1.0):.2f}%"

    lattice = "".join(_upright("grid", at(tick), 0, 38) for tick in ticks)
    limit = "" if line.limit is None else _upright("from", at(line.limit), 3, 35)
    drawn = _UNTRIED if line.measured.value is None else limit + _result(line, at, top)
    return f'<svg class="plot" role="img" aria-label="{escape(_said(line, scale))}">{lattice}{drawn}</svg>'


_UNTRIED = '<text x="50%" y="23" text-anchor="middle">not tested</text>'


def _said(line: Strip, scale: str) -> str:
    """What a strip shows, for those who do not see it."""
    if line.measured.value is None:
        return NOT_TESTED
    by_chance = _chance(line)
    return figure(line.measured) + ("" if by_chance is None else f", by chance {shown(by_chance, scale)}")


def _result(line: Strip, at: Callable[[float], str], top: float) -> str:
    found, by_chance = line.measured, _chance(line)
    bar = f'<line class="bar" x1="{at(found.low)}" x2="{at(found.high)}" y1="16" y2="16"/>'
    endless = _ARROW if found.high > top else ""
    dot = f'<circle class="marked" cx="{at(found.value or 0.0)}" cy="16" r="5"/>'
    return _triangle(at(found.ceiling)) + bar + endless + dot + ("" if by_chance is None else _cross(at(by_chance)))


def _upright(kind: str, place: str, above: int, below: int) -> str:
    return f'<line class="{kind}" x1="{place}" x2="{place}" y1="{above}" y2="{below}"/>'


def _spot(place: str, drawing: str) -> str:
    return f'<svg x="{place}" y="0" width="1" height="1" overflow="visible">{drawing}</svg>'


def _triangle(place: str) -> str:
    return _spot(place, '<path class="hollow" d="M-5 2h10l-5 8z"/>')


def _cross(place: str) -> str:
    return _spot(place, '<path class="cross" d="M-5 24l10 10M-5 34l10 -10"/>')


_ARROW = _spot("100%", '<path class="bar" d="M2 11l6 5l-6 5"/>')


# ---- planes: curves over two axes ----------------------------------------------------------------------------------


class Ruler(Protocol):
    """One axis of a plane."""

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        ...

    def marks(self) -> list[tuple[float, str]]:
        """The values that are named."""
        ...


@dataclass(frozen=True)
class Decades:
    """From a small share to 100 %, each decade as wide as the next: low rates of false alarms are what matters."""

    lowest: int  # as a power of ten, below 0

    def share(self, value: float) -> float:
        """Where a value lies; all that is smaller lies on the edge."""
        return 1.0 + math.log10(min(max(value, 10.0**self.lowest), 1.0)) / -self.lowest

    def marks(self) -> list[tuple[float, str]]:
        """A mark for each decade."""
        return [(10.0**power, f"{10.0 ** (power + 2):g}\N{NO-BREAK SPACE}%") for power in range(self.lowest, 1)]


@dataclass(frozen=True)
class Even:
    """From zero to a round number."""

    top: float
    steps: tuple[float, ...]

    def share(self, value: float) -> float:
        """Where a value lies."""
        return min(max(value / self.top, 0.0), 1.0)

    def marks(self) -> list[tuple[float, str]]:
        """Its round steps."""
        return [(step, number(step)) for step in self.steps]


_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 470, 410, 62, 26, 30, 50


def planes(finding: Finding) -> Html:
    """All of a finding's curves, each kind on a plane of its own, with their numbers."""
    roc = [curve for curve in finding.curves if curve.kind == ROC and curve.across and curve.label != _CHANCE]
    shown_against = [curve for curve in finding.curves if curve.kind == EMPIRICAL and curve.across]
    return joined(_roc(finding, roc) if roc else "", _empirical(finding, shown_against) if shown_against else "")


def _roc(finding: Finding, curves: Sequence[Curve]) -> Html:
    smallest = min([x for curve in curves for x in (*curve.across, *curve.up) if x > 0], default=1e-3)
    ruler = Decades(min(-3, max(-5, math.floor(math.log10(smallest)))))
    name = f"True against false positives, profile {finding.profile}"
    drawn = [_curve(n, _stairs(curve), ruler, ruler, len(curves)) for n, curve in enumerate(curves)]
    bound = _allowed(finding)
    if bound is not None:
        drawn.insert(0, _line("allowed", bound, ruler, ruler))
    plane = _plane(name, "false positives", "true positives", ruler, ruler, [*drawn, _diagonal(_CHANCE)])
    return joined(Html("<h4>True against false positives</h4>"), plane, _rates(finding, curves, bound is not None))


def _stairs(curve: Curve) -> list[tuple[float, float]]:
    """Between two thresholds nothing is known, so the line goes level until the next one is reached, and never in between."""
    points, level = [(0.0, 0.0)], 0.0
    for x, y in sorted(zip(curve.across, curve.up, strict=True)):
        if x > points[-1][0]:
            points.append((x, level))
        points.append((x, y))
        level = y
    return [*points, (1.0, level)]


def _allowed(finding: Finding) -> list[tuple[float, float]] | None:
    """The most true positives that the claimed epsilon allows, where it is claimed of whole documents."""
    if finding.epsilon is None or finding.delta is None or finding.epsilon_unit not in _WHOLE:
        return None
    grow, delta = math.exp(min(finding.epsilon, 700.0)), finding.delta
    places = [10.0 ** (step / 20 - 5) for step in range(101)]
    return [(x, min(grow * x + delta, 1 - (1 - delta - x) / grow, 1.0)) for x in places]


_AT = (0.001, 0.01, 0.1)


_WHY_MORE = (
    "These are the rates among the very documents that were asked about. A result that is told “at” a rate of false alarms is "
    "smaller: its threshold is set so that surely no more of all others lie above it."
)


def _rates(finding: Finding, curves: Sequence[Curve], bounded: bool) -> Html:
    columns = ("line", *(f"true positives at {100 * at:g}\N{NO-BREAK SPACE}% false ones" for at in _AT))
    rows = [
        (joined(_sample(n), curve.label), *(shown(_rate(curve, at), SHARE) for at in _AT)) for n, curve in enumerate(curves)
    ]
    most = f" The dotted line marked ε is the most that epsilon = {finding.epsilon:.4g} allows." if bounded else ""
    caption = (
        "Both axes are logarithmic; the finely dotted line is chance. With fewer than 1,000 tries that should fail, what "
        f"stands at 0.1 % was reached without any false positive. {_WHY_MORE}{most}"
    )
    return grid(columns, rows, caption)


def _rate(curve: Curve, at: float) -> float:
    return max((y for x, y in zip(curve.across, curve.up, strict=True) if x <= at + 1e-12), default=0.0)


def _empirical(finding: Finding, curves: Sequence[Curve]) -> Html:
    finite = [value for curve in curves for value in (*curve.across, *curve.up) if math.isfinite(value)]
    reach = axis(max([*finite, finding.epsilon or 0.0, 1e-3]), 4)
    ruler = Even(reach.top, tuple(reach.ticks()))
    drawn: list[str] = []
    for n, curve in enumerate(curves):
        points = [point for point in sorted(zip(curve.across, curve.up, strict=True)) if all(map(math.isfinite, point))]
        dots = [_dot(point, ruler) for point in points] if len(points) > 1 else []  # a letter stands for a single point
        drawn += [*dots, _curve(n, points, ruler, ruler, len(curves))] if points else []
    name = f"Shown against claimed epsilon, profile {finding.profile}"
    plane = _plane(name, "epsilon that is claimed", "epsilon that is shown", ruler, ruler, [*drawn, _diagonal("as claimed")])
    places = sorted({x for curve in curves for x in curve.across})
    known = [dict(zip(curve.across, curve.up, strict=True)) for curve in curves]
    rows = [(f"{x:.4g}", *("–" if x not in line else shown(line[x], EPSILON) for line in known)) for x in places]
    of_what = "claimed of one sum" if "one sum" in finding.measured.unit else "claimed of the whole run"
    key = grid((of_what, *(f"{_letter(n)}: {_labelled(curve)}" for n, curve in enumerate(curves))), rows, _ABOVE)
    return joined(Html("<h4>Shown against claimed epsilon</h4>"), plane, key)


def _labelled(curve: Curve) -> str:
    """What was shown is the lower end of an interval: so much, surely."""
    return f"{curve.label} (lower end of its interval)" if curve.label.startswith("shown") else curve.label


_ABOVE = (
    "All numbers are epsilons. What lies above the finely dotted line would show more than is claimed. An ideal attacker's "
    "line is its average on honest noise: one that is never wrong could show more."
)


# ---- drawing on a plane --------------------------------------------------------------------------------------------


def _spots(points: Sequence[tuple[float, float]], across: Ruler, up: Ruler) -> list[tuple[int, int]]:
    """On the drawing, in whole units, without those that change nothing: curves may have many thousand points."""
    spots: list[tuple[int, int]] = []
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    for x, y in points:
        spot = (round(_LEFT + across.share(x) * wide), round(_HEIGHT - _BOTTOM - up.share(y) * tall))
        if not spots or spot != spots[-1]:
            spots.append(spot)
    return spots


def _line(kind: str, points: Sequence[tuple[float, float]], across: Ruler, up: Ruler) -> str:
    spots = _spots(points, across, up)
    x, y = spots[len(spots) // 4]
    return f'<path class="{kind}" d="M{_way(spots)}"/>{_marked("ε", x, y)}'


def _way(spots: Sequence[tuple[int, int]]) -> str:
    return "L".join(f"{x} {y}" for x, y in spots)


def _curve(order: int, points: Sequence[tuple[float, float]], across: Ruler, up: Ruler, of: int) -> str:
    spots = _spots(points, across, up)
    begins, ends = spots[0][0], spots[-1][0]
    aim = begins + (ends - begins) * (order + 0.5) / of  # each line's letter at another place, so that none hides another
    x, y = _on(spots, aim)
    return f'<path class="curve" d="M{_way(spots)}"{_dashes(order)}/>{_marked(_letter(order), x, y)}'


def _on(spots: Sequence[tuple[int, int]], aim: float) -> tuple[int, int]:
    """The place of a line at that distance from the left."""
    for (x0, y0), (x1, y1) in pairwise(spots):
        if x0 <= aim <= x1 and x1 > x0:
            return round(aim), round(y0 + (y1 - y0) * (aim - x0) / (x1 - x0))
    return spots[-1]


def _dashes(order: int) -> str:
    dashes = DASHES[order % len(DASHES)]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _letter(order: int) -> str:
    return chr(ord("A") + order % 26)


def _marked(letter: str, x: int, y: int) -> str:
    text = f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="11">{letter}</text>'
    return f'<circle class="letter" cx="{x}" cy="{y}" r="8"/>{text}'


def _dot(point: tuple[float, float], ruler: Ruler) -> str:
    ((x, y),) = _spots([point], ruler, ruler)
    return f'<circle class="marked" cx="{x}" cy="{y}" r="4"/>'


def _sample(order: int) -> Html:
    drawing = f'<path class="curve" d="M0 10H64"{_dashes(order)}/>{_marked(_letter(order), 32, 10)}'
    return Html(f'<svg class="plot sample" viewBox="0 0 64 20" aria-hidden="true">{drawing}</svg>')


def _diagonal(name: str) -> str:
    left, right, top, ground = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
    slope = math.degrees(math.atan2(ground - top, right - left))
    x, y = left + 0.3 * (right - left), ground - 0.3 * (ground - top)
    turned = f"translate({x + 14:.0f} {y + 16:.0f}) rotate(-{slope:.0f})"
    text = f'<text class="halo" transform="{turned}" text-anchor="middle">{escape(name)}</text>'
    return f'<path class="chance" d="M{left} {ground}L{right} {top}"/>{text}'


def _plane(name: str, below: str, beside: str, across: Ruler, up: Ruler, drawn: Sequence[str]) -> Html:
    right, ground = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{ground}H{right}"/>']
    for value, text in across.marks():
        x = _LEFT + across.share(value) * (right - _LEFT)
        parts.append(f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP}" y2="{ground}"/>')
        parts.append(f'<text x="{x:.0f}" y="{ground + 18}" text-anchor="middle">{text}</text>')
    for value, text in up.marks():
        y = ground - up.share(value) * (ground - _TOP)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<text x="{_LEFT - 7}" y="{y + 4:.0f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>')
    parts.append(f'<text x="4" y="16">{escape(beside)}</text>')
    inner = "".join((*parts, *drawn))
    opening = f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(name)}">'
    return Html(f"<figure class=plane>{opening}<title>{escape(name)}</title>{inner}</svg></figure>")
