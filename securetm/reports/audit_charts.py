"""The plots of an audit as inline SVG: results as bars on one axis, curves on a plane. This module computes no result.

A letter and dashes distinguish the lines; colour alone carries no meaning. Each plot has its numbers beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from securetm.auditing.record import Curve, Finding, Measured
from securetm.auditing.verdicts import NOT_TESTED
from securetm.contracts import Unit
from securetm.foreign_text import html_text
from securetm.reports.audit_markup import Html, grid, joined
from securetm.reports.audit_tables import AuditTable, Cell
from securetm.reports.audit_wording import EPSILON, NUMBER, SHARE, by_chance, figure, scale_of, shown
from securetm.reports.charts import axis, dashes, number
from securetm.wording import upward

ROC, EMPIRICAL = "roc", "epsilon"  # kinds of curves (auditing/record.py)
_CHANCE = "chance"  # the diagonal of a plot of rates
_WHOLE = {unit.value for unit in Unit if unit.whole_documents}
_DOT = "Dot with a bar: what the attack reached, and its interval. Cross: the same attack on random numbers."
_CAPTIONS = {
    SHARE: f"{_DOT} Upright stroke: the interval must begin there or beyond to count as success. Open triangle: where the "
    "interval of an ideal attacker would begin; what stands on the right edge may lie beyond it.",
    EPSILON: f"{_DOT} Upright stroke: the epsilon that is claimed, or from which on something counts as success where none "
    "is. Open triangle: the most that an ideal attacker could show with as many tries. What begins beyond the "
    "stroke succeeded. An arrow: it goes on beyond the edge.",
    NUMBER: f"{_DOT} Upright stroke: from here on it counts as success. Open triangle: the most that an ideal attacker could "
    "show with as many tries. An arrow: it goes on beyond the edge.",
}
_BEYOND = 4  # times the limit: on a longer axis, results near the limit could not be distinguished
_SMALL = 0.1  # smaller shares have an axis of their own, or they could not be distinguished


# ---- bars: one value with its interval in each line ----------------------------------------------------------------


@dataclass(frozen=True)
class ResultBar:
    """One line of a chart: a label, a result, and what it is compared with."""

    label: Html
    measured: Measured
    by_chance: float | None
    limit: float | None = None  # from here on it counts as success


def bar_of(finding: Finding, label: Html) -> ResultBar:
    """The line of a finding's own measure."""
    return ResultBar(label, finding.outcome.measured, by_chance(finding), finding.attempt.refuted_from)


def bars(lines: Sequence[ResultBar], *, explained: bool = True) -> Html:
    """Results on one axis for each scale: shares, small shares, epsilons, other numbers."""
    kinds = [_kind(line, lines) for line in lines]
    groups = {kind: [line for line, own in zip(lines, kinds, strict=True) if own == kind] for kind in kinds}
    return joined(*(_on_one_scale(group, *kind, explained) for kind, group in groups.items()))


def _kind(line: ResultBar, lines: Sequence[ResultBar]) -> tuple[str, bool]:
    """The scale, and whether all results of this measure are small on it."""
    scale = scale_of(line.measured)
    alike = [one for one in lines if one.measured.measure == line.measured.measure and one.measured.value is not None]
    return scale, scale == SHARE and bool(alike) and all(_reach(one) < _SMALL for one in alike)


def _reach(line: ResultBar) -> float:
    return max(line.measured.high, line.limit or 0.0, line.by_chance or 0.0)


def _on_one_scale(lines: Sequence[ResultBar], scale: str, small: bool, explained: bool) -> Html:
    top, ticks = _ticks(lines, scale, small)
    rows = "".join(f"<div>{line.label}</div><div class=bar>{_bar(line, scale, top, ticks)}</div>" for line in lines)
    names = "".join(
        f'<text x="{100 * tick / top:.2f}%" y="14" text-anchor="middle">{html_text(_named(tick, scale))}</text>'
        for tick in ticks
    )
    foot = f'<div class=blank></div><div class=axis><svg class="plot" aria-hidden="true">{names}</svg></div>'
    caption = f"<figcaption class=note>{_CAPTIONS[scale]}</figcaption>" if explained else ""
    return Html(f"<figure><div class=bars>{rows}{foot}</div>{caption}</figure>")


def _ticks(lines: Sequence[ResultBar], scale: str, small: bool) -> tuple[float, list[float]]:
    """The end of the axis, and its marks."""
    if scale == SHARE and not small:
        return 1.0, [0, 0.25, 0.5, 0.75, 1.0]
    ends = [end for line in lines for end in (*_ends(line, small), line.limit or 0.0) if math.isfinite(end)]
    limit = max((line.limit or 0.0 for line in lines), default=0.0)
    most = min(max(ends), _BEYOND * limit) if limit and not small else max(ends)
    reach = axis(max(most, 1e-3), 4)
    return reach.top, reach.ticks()


def _ends(line: ResultBar, small: bool) -> tuple[float, ...]:
    found = line.measured
    ends = (found.value or 0.0, found.low, found.high, line.by_chance or 0.0)
    return ends if small else (*ends, found.ceiling)


def _named(tick: float, scale: str) -> str:
    return f"{100 * tick:.3g}\N{NO-BREAK SPACE}%" if scale == SHARE else number(tick)


def _bar(line: ResultBar, scale: str, top: float, ticks: Sequence[float]) -> str:
    def at(value: float) -> str:
        return f"{100 * min(max(value / top, 0.0), 1.0):.2f}%"

    lattice = "".join(_upright("grid", at(tick), 0, 38) for tick in ticks)
    limit = "" if line.limit is None else _upright("from", at(line.limit), 3, 35)
    drawn = _UNTRIED if line.measured.value is None else limit + _result(line, at, top)
    return f'<svg class="plot" role="img" aria-label="{html_text(_said(line, scale))}">{lattice}{drawn}</svg>'


_UNTRIED = '<text x="50%" y="23" text-anchor="middle">not tested</text>'


def _said(line: ResultBar, scale: str) -> str:
    """What a bar shows, in words for a screen reader."""
    if line.measured.value is None:
        return NOT_TESTED
    return figure(line.measured) + ("" if line.by_chance is None else f", by chance {shown(line.by_chance, scale)}")


def _result(line: ResultBar, at: Callable[[float], str], top: float) -> str:
    found = line.measured
    bar = f'<line class="bar" x1="{at(found.low)}" x2="{at(found.high)}" y1="16" y2="16"/>'
    endless = _ARROW if found.high > top else ""
    dot = f'<circle class="marked" cx="{at(found.value or 0.0)}" cy="16" r="5"/>'
    ideal = _spot(at(found.ceiling), '<path class="hollow" d="M-5 2h10l-5 8z"/>')
    cross = '<path class="cross" d="M-5 24l10 10M-5 34l10 -10"/>'
    return ideal + bar + endless + dot + ("" if line.by_chance is None else _spot(at(line.by_chance), cross))


def _upright(kind: str, place: str, above: int, below: int) -> str:
    return f'<line class="{kind}" x1="{place}" x2="{place}" y1="{above}" y2="{below}"/>'


def _spot(place: str, drawing: str) -> str:
    return f'<svg x="{place}" y="0" width="1" height="1" overflow="visible">{drawing}</svg>'


_ARROW = _spot("100%", '<path class="bar" d="M2 11l6 5l-6 5"/>')


# ---- planes: curves over two equal axes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PlaneAxis:
    """Both axes of a plane: where a value lies, from 0 to 1, and the values that are named."""

    share: Callable[[float], float]
    marks: Sequence[tuple[float, str]]


def _logarithmic(lowest: int) -> PlaneAxis:
    """From a power of ten to 100 %, all decades equally wide: low rates of false alarms matter most."""

    def share_of(value: float) -> float:
        return 1.0 + math.log10(min(max(value, 10.0**lowest), 1.0)) / -lowest

    return PlaneAxis(share_of, [(10.0**n, f"{10.0 ** (n + 2):g}\N{NO-BREAK SPACE}%") for n in range(lowest, 1)])


Points = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 470, 410, 62, 26, 30, 50
_AT = (0.001, 0.01, 0.1)  # rates of false positives that the table names
_WHY_MORE = (
    "These are the rates among the very documents that were asked about. A result that is told “at” a rate of false alarms is "
    "smaller: its threshold is set so that surely no more of all others lie above it."
)
_ABOVE = (
    "All numbers are epsilons. What lies above the finely dotted line would show more than is claimed. An ideal attacker's "
    "line is its average on honest noise: one that is never wrong could show more."
)


def planes(finding: Finding) -> Html:
    """The curves of a finding with their numbers. Each kind of curve has its own plane."""
    curves = [curve for curve in finding.outcome.curves if curve.across]
    roc = [curve for curve in curves if curve.kind == ROC and curve.label != _CHANCE]
    epsilons = [curve for curve in curves if curve.kind == EMPIRICAL]
    return joined(_roc(finding, roc) if roc else "", _empirical(finding, epsilons) if epsilons else "")


def _roc(finding: Finding, curves: Sequence[Curve]) -> Html:
    smallest = min([x for curve in curves for x in (*curve.across, *curve.up) if x > 0], default=1e-3)
    scale = _logarithmic(min(-3, max(-5, math.floor(math.log10(smallest)))))
    drawn = [_curve(n, _stairs(curve), scale, len(curves)) for n, curve in enumerate(curves)]
    bound = _allowed(finding)
    if bound is not None:
        spots = _spots(bound, scale)
        drawn.insert(0, _path("allowed", spots) + _marked("ε", *spots[len(spots) // 4]))
    title = "True against false positives"
    plane = _plane(f"{title}, profile {finding.run.profile}", ("false positives", "true positives"), scale, drawn, _CHANCE)
    return joined(Html(f"<h4>{title}</h4>"), plane, _rates(finding, curves, bound is not None))


def _stairs(curve: Curve) -> Points:
    """The curve as stairs. Nothing is known between two thresholds, so the line stays level there."""
    points, level = [(0.0, 0.0)], 0.0
    for x, y in sorted(zip(curve.across, curve.up, strict=True)):
        if x > points[-1][0]:
            points.append((x, level))
        points.append((x, y))
        level = y
    return [*points, (1.0, level)]


def _allowed(finding: Finding) -> Points | None:
    """The most true positives that the claimed epsilon allows; None if it is not claimed for whole documents."""
    run = finding.run
    if run.epsilon is None or run.delta is None or run.epsilon_unit not in _WHOLE:
        return None
    grow, delta = math.exp(min(run.epsilon, 700.0)), run.delta
    places = [10.0 ** (step / 20 - 5) for step in range(101)]
    return [(x, min(grow * x + delta, 1 - (1 - delta - x) / grow, 1.0)) for x in places]


def _rates(finding: Finding, curves: Sequence[Curve], bounded: bool) -> Html:
    columns = ("line", *(f"true positives at {100 * at:g}\N{NO-BREAK SPACE}% false ones" for at in _AT))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        ([joined(_sample(n), curve.label)], *([shown(_rate(curve, at), SHARE)] for at in _AT)) for n, curve in enumerate(curves)
    )
    most = (
        f" The dotted line marked ε is the most that epsilon = {upward(finding.run.epsilon or 0.0)} allows." if bounded else ""
    )
    caption = (
        "Both axes are logarithmic; the finely dotted line is chance. With fewer than 1,000 tries that should fail, what "
        f"stands at 0.1 % was reached without any false positive. {_WHY_MORE}{most}"
    )
    return grid(AuditTable(columns, rows, caption))


def _rate(curve: Curve, at: float) -> float:
    return max((y for x, y in zip(curve.across, curve.up, strict=True) if x <= at + 1e-12), default=0.0)


def _empirical(finding: Finding, curves: Sequence[Curve]) -> Html:
    finite = [value for curve in curves for value in (*curve.across, *curve.up) if math.isfinite(value)]
    reach = axis(max([*finite, finding.run.epsilon or 0.0, 1e-3]), 4)
    scale = PlaneAxis(reach.share, [(tick, number(tick)) for tick in reach.ticks()])
    drawn: list[str] = []
    for n, curve in enumerate(curves):
        points = [point for point in sorted(zip(curve.across, curve.up, strict=True)) if all(map(math.isfinite, point))]
        if len(points) > 1:  # a letter marks a single point
            drawn += [f'<circle class="marked" cx="{x}" cy="{y}" r="4"/>' for x, y in (_spot_of(p, scale) for p in points)]
        drawn += [_curve(n, points, scale, len(curves))] if points else []
    title, named = "Shown against claimed epsilon", ("epsilon that is claimed", "epsilon that is shown")
    plane = _plane(f"{title}, profile {finding.run.profile}", named, scale, drawn, "as claimed")
    return joined(Html(f"<h4>{title}</h4>"), plane, _epsilons(finding, curves))


def _epsilons(finding: Finding, curves: Sequence[Curve]) -> Html:
    known = [dict(zip(curve.across, curve.up, strict=True)) for curve in curves]
    places = sorted({x for curve in curves for x in curve.across})
    rows = tuple(([f"{x:.4g}"], *([shown(line.get(x), EPSILON)] for line in known)) for x in places)
    of_what = "claimed of one sum" if "one sum" in finding.outcome.measured.unit else "claimed of the whole run"
    lower = ["(lower end of its interval)" if curve.label.startswith("shown") else "" for curve in curves]
    columns = (of_what, *(f"{_letter(n)}: {curve.label} {lower[n]}".rstrip() for n, curve in enumerate(curves)))
    return grid(AuditTable(columns, rows, _ABOVE))


# ---- drawing on a plane --------------------------------------------------------------------------------------------


def _spots(points: Points, scale: PlaneAxis) -> list[tuple[int, int]]:
    """The points on the drawing, in whole units. Repeated spots are dropped: a curve may have many thousand points."""
    return [spot for spot, _ in groupby(_spot_of(point, scale) for point in points)]


def _spot_of(point: tuple[float, float], scale: PlaneAxis) -> tuple[int, int]:
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    return round(_LEFT + scale.share(point[0]) * wide), round(_HEIGHT - _BOTTOM - scale.share(point[1]) * tall)


def _path(kind: str, spots: Sequence[tuple[int, int]], drawn: str = "") -> str:
    return f'<path class="{kind}" d="M{"L".join(f"{x} {y}" for x, y in spots)}"{drawn}/>'


def _curve(order: int, points: Points, scale: PlaneAxis, of: int) -> str:
    spots = _spots(points, scale)
    begins, ends = spots[0][0], spots[-1][0]
    aim = begins + (ends - begins) * (order + 0.5) / of  # each line has its letter at another place
    return _path("curve", spots, dashes(order)) + _marked(_letter(order), *_on(spots, aim))


def _on(spots: Sequence[tuple[int, int]], aim: float) -> tuple[int, int]:
    """The point of a line at this distance from the left."""
    for (x0, y0), (x1, y1) in pairwise(spots):
        if x0 <= aim <= x1 and x1 > x0:
            return round(aim), round(y0 + (y1 - y0) * (aim - x0) / (x1 - x0))
    return spots[-1]


def _letter(order: int) -> str:
    return chr(ord("A") + order % 26)


def _marked(letter: str, x: int, y: int) -> str:
    text = f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="11">{letter}</text>'
    return f'<circle class="letter" cx="{x}" cy="{y}" r="8"/>{text}'


def _sample(order: int) -> Html:
    drawing = f'<path class="curve" d="M0 10H64"{dashes(order)}/>{_marked(_letter(order), 32, 10)}'
    return Html(f'<svg class="plot sample" viewBox="0 0 64 20" aria-hidden="true">{drawing}</svg>')


def _diagonal(name: str) -> str:
    left, right, top, ground = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
    slope = math.degrees(math.atan2(ground - top, right - left))
    x, y = left + 0.3 * (right - left), ground - 0.3 * (ground - top)
    turned = f"translate({x + 14:.0f} {y + 16:.0f}) rotate(-{slope:.0f})"
    text = f'<text class="halo" transform="{turned}" text-anchor="middle">{html_text(name)}</text>'
    return f'<path class="chance" d="M{left} {ground}L{right} {top}"/>{text}'


def _plane(name: str, axes: tuple[str, str], scale: PlaneAxis, drawn: Sequence[str], diagonal: str) -> Html:
    below, beside = axes
    right, ground = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{ground}H{right}"/>']
    for value, text in scale.marks:
        x, y = _LEFT + scale.share(value) * (right - _LEFT), ground - scale.share(value) * (ground - _TOP)
        parts.append(f'<line class="grid" x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP}" y2="{ground}"/>')
        parts.append(f'<text x="{x:.0f}" y="{ground + 18}" text-anchor="middle">{text}</text>')
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<text x="{_LEFT - 7}" y="{y + 4:.0f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{html_text(below)}</text>')
    parts.append(f'<text x="4" y="16">{html_text(beside)}</text>')
    inner = "".join((*parts, *drawn, _diagonal(diagonal)))
    opening = f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html_text(name)}">'
    return Html(f"<figure class=plane>{opening}<title>{html_text(name)}</title>{inner}</svg></figure>")
