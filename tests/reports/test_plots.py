"""Plots: every point where its numbers say, in braille and in SVG, and lines that are told apart without colour."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from securetm.accounting.calculator.budget_report import Plot, PlotLine
from securetm.reports.charts import Axis, axes_of, axis, in_svg, in_terminal, number

from .sheets import PLOT

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("largest", "top", "step"), [(1.83, 2.0, 0.5), (10, 10, 2), (0.0037, 0.004, 0.001), (1704, 2000, 500), (1000, 1000, 200)]
)
def test_an_axis_ends_at_a_round_number(largest: float, top: float, step: float) -> None:
    found = axis(largest, 5 if largest in (10, 1000) else 4)
    assert (found.top, found.step) == (pytest.approx(top), pytest.approx(step))
    assert found.top >= largest
    assert found.ticks()[0] == 0
    assert found.ticks()[-1] == pytest.approx(top)


def test_numbers_on_an_axis() -> None:
    assert [number(value) for value in (0, 0.25, 2500, 1.5)] == ["0", "0.25", "2,500", "1.5"]
    assert number(0.1 + 0.2) == "0.3"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_plot_is_as_wide_as_asked(width: int) -> None:
    rows = in_terminal(PLOT, width).splitlines()
    assert max(map(len, rows)) <= width
    assert max(map(len, rows)) >= width - 1
    assert rows[0].strip() == "epsilon per document"
    assert any("●     the setting asked about" in row for row in rows)
    assert [row.split("  ")[-1] for row in rows if row.strip().startswith("⠤")] == ["tight & sound", "looser"]


def dots(text: str) -> list[tuple[int, int]]:
    """Every dot of a plot as column and row of dots, measured from the upper left of its field."""
    field = [re.split("[│┤]", row, maxsplit=1)[1] for row in text.splitlines() if re.search("[│┤]", row)]
    bits = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
    found = []
    for row, cells in enumerate(field):
        for column, cell in enumerate(cells):
            code = ord(cell) - 0x2800 if "\u2800" <= cell <= "\u28ff" else 0
            found += [(2 * column + x, 4 * row + y) for x in (0, 1) for y in range(4) if code & bits[x][y]]
    return found


def test_the_dots_lie_where_the_numbers_say() -> None:
    line = Plot("", "x", "y", (PlotLine("straight", ((0.0, 0.0), (10.0, 2.0))),))
    height, width = 10, 60
    found = dots(in_terminal(line, width, height))
    across = max(x for x, _ in found)
    assert across == 2 * (width - 6) - 1
    for x, y in found:
        share = x / across
        assert y == pytest.approx(2 + (1 - share) * (4 * height - 4), abs=1.5)


def test_what_is_infinite_is_left_out() -> None:
    broken = replace(PLOT, lines=(PlotLine("a", ((1.0, 1.0), (2.0, math.inf), (3.0, 2.0))),), marked=None)
    assert axes_of(broken)[1].top == 2.0
    assert "inf" not in in_svg(broken)
    assert "⠤" in in_terminal(broken, 60) or "⣀" in in_terminal(broken, 60)


def path_of(svg: str, name: str) -> tuple[list[tuple[float, float]], str | None]:
    """The points of a path, and its dashes."""
    path = next(p for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.get("class") == name)
    points = [tuple(map(float, pair.split())) for pair in str(path.get("d"))[1:].split("L")]
    return [(x, y) for x, y in points], path.get("stroke-dasharray")


def value_of(place: tuple[float, float], svg: str) -> tuple[float, float]:
    """A point's numbers, read off the axes as a person would: between the marks."""
    texts = [(float(t.get("x", 0)), float(t.get("y", 0)), t) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    up = sorted((y - 4, float(str(t.text))) for _, y, t in texts if t.get("text-anchor") == "end")
    across = sorted((x, float(str(t.text))) for x, y, t in texts if t.get("text-anchor") == "middle" and y == 328)
    return _between(across, place[0]), _between(up, place[1])


def _between(marks: list[tuple[float, float]], at: float) -> float:
    (first, low), (last, high) = marks[0], marks[-1]
    return low + (at - first) / (last - first) * (high - low)


def test_the_lines_of_an_svg_are_at_their_numbers() -> None:
    svg = in_svg(PLOT)
    for order, line in enumerate(PLOT.lines):
        points, _ = path_of(svg, f"line{order}")
        assert len(points) == len(line.points)
        for place, (x, y) in zip(points, line.points, strict=True):
            assert value_of(place, svg) == (pytest.approx(x, abs=0.02), pytest.approx(y, abs=0.01))


def test_lines_of_an_svg_differ_without_colour_and_have_names() -> None:
    svg = in_svg(PLOT)
    assert path_of(svg, "line0")[1] is None
    assert path_of(svg, "line1")[1] == "9 5"
    names = [t for t in ElementTree.fromstring(svg).iter(f"{SVG}text") if t.get("class") == "name"]
    assert {t.text for t in names} == {"tight & sound", "looser"}
    places = sorted(float(t.get("y", 0)) for t in names)
    assert places[1] - places[0] >= 16  # they do not lie on each other


def test_an_svg_stays_in_its_box() -> None:
    for point in (*path_of(in_svg(PLOT), "line0")[0], *path_of(in_svg(PLOT), "line1")[0]):
        assert 0 <= point[0] <= 760
        assert 0 <= point[1] <= 360


def test_an_axis_holds_what_lies_beyond_it() -> None:
    assert Axis(2.0, 1.0).share(5.0) == 1.0
