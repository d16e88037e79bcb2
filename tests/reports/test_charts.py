"""Figures and tables: every point where its numbers say, and no word broken at any width."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from securetm.figures import Curve, Figure
from securetm.reports.charts import axes_of, in_svg, in_terminal
from securetm.reports.runs import own_topics, quality, shared_topics
from securetm.reports.terminal import Screen
from securetm.reports.texts import sentence

from .sheets import PLOT

FIGURE = PLOT


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
    line = Figure("", "x", "y", (Curve("straight", ((0.0, 0.0), (10.0, 2.0))),))
    height, width = 10, 60
    found = dots(in_terminal(line, width, height))
    across = max(x for x, _ in found)
    assert across == 2 * (width - 6) - 1
    for x, y in found:
        share = x / across
        assert y == pytest.approx(2 + (1 - share) * (4 * height - 4), abs=1.5)


def test_what_is_infinite_is_left_out() -> None:
    broken = replace(FIGURE, curves=(Curve("a", ((1.0, 1.0), (2.0, math.inf), (3.0, 2.0))),), marked=None)
    assert axes_of(broken)[1].top == 2.0
    assert "inf" not in in_svg(broken)
    assert "⠤" in in_terminal(broken, 60) or "⣀" in in_terminal(broken, 60)


def texts_of(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter("text"))


def curves_of(svg: str) -> list[tuple[list[tuple[float, float]], str]]:
    """The points of each drawn curve, and its dashes."""
    found = []
    for path in ElementTree.fromstring(svg).iter("path"):
        style = str(path.get("style"))
        if "stroke-width: 2" in style:
            pairs = re.findall(r"([\d.]+) ([\d.]+)", str(path.get("d")))
            dashes = re.search(r"stroke-dasharray: ([^;]+)", style)
            found.append(([(float(x), float(y)) for x, y in pairs], dashes[1] if dashes else ""))
    return found


def value_of(place: tuple[float, float], svg: str) -> tuple[float, float]:
    """A point's numbers, read off the axes as a person would: between the marks."""
    marks = [(t, float(str(t.text))) for t in texts_of(svg) if re.fullmatch(r"[\d.]+", str(t.text))]
    across = sorted((float(t.get("x", 0)), value) for t, value in marks if "middle" in str(t.get("style")))
    up = sorted((float(t.get("y", 0)) - 4.5, value) for t, value in marks if "end" in str(t.get("style")))
    return _between(across, place[0]), _between(up, place[1])


def _between(marks: list[tuple[float, float]], at: float) -> float:
    (first, low), (last, high) = marks[0], marks[-1]
    return low + (at - first) / (last - first) * (high - low)


def test_the_curves_of_an_svg_are_at_their_numbers_and_differ_without_colour() -> None:
    svg = in_svg(FIGURE)
    drawn = curves_of(svg)
    for (points, _), line in zip(drawn, FIGURE.curves, strict=True):
        for place, (x, y) in zip(points, line.points, strict=True):
            assert 0 <= place[0] <= 760
            assert value_of(place, svg) == (pytest.approx(x, abs=0.05), pytest.approx(y, abs=0.02))
    assert [bool(dashes) for _, dashes in drawn] == [False, True]
    assert {"A", "B"} <= {t.text for t in texts_of(svg)}
    assert [t.text for t in texts_of(in_svg(replace(FIGURE, curves=FIGURE.curves[:1])))].count("A") == 0  # alone it needs none


def test_an_svg_is_the_same_each_time_and_takes_its_colours_from_the_page() -> None:
    svg = in_svg(FIGURE)
    assert svg == in_svg(FIGURE)
    assert not re.search(r"#[0-9a-f]{6}| id=|font-family|url\(|http", svg)
    assert {"var(--ink)", "var(--line)", "var(--second)"} <= set(re.findall(r"var\(--\w+\)", svg))
    assert len(svg) < 6000


def test_no_text_of_a_figure_is_markup_or_mathematics() -> None:
    hostile = replace(FIGURE, title="<b>$x$", x="$\\frac{<i>$", curves=(Curve("</svg>", FIGURE.curves[0].points),))
    svg = in_svg(hostile)
    assert ElementTree.fromstring(svg).get("aria-label") == "<b>$x$"
    assert hostile.x in {t.text for t in texts_of(svg)}


def test_of_many_points_only_those_are_drawn_that_can_be_told_apart() -> None:
    many = Curve("many", tuple((n / 50_000, n / 50_000) for n in range(50_001)))
    assert len(in_svg(Figure("t", "x", "y", (many,)))) < 12_000


# ---- tables ----------------------------------------------------------------------------------------------------------------


FIVE = ("standard library", "numpy", "scipy", "torch", "scikit-learn")
MANY = tuple(f"party-{number:03d}" for number in range(1, 101))
WORDS = ["implementation", "context", "callable", "calling", "thread", "func", "backend"]


def result(parties: tuple[str, ...]) -> dict[str, Any]:
    """A run of twenty topics, each strong at one party or at three."""
    shares = {name: [0.02] * 20 for name in parties}
    for topic in range(20):
        for place in range(3 if topic % 2 else 1):
            shares[parties[(topic + place) % len(parties)]][topic] = 0.5
    figures = {"npmi": 0.123, "held_out": 1234.5, "held_out_everywhere": 12345.6}
    return {
        "parties": list(parties),
        "topics": [[*WORDS[topic % 5 :], *WORDS[: topic % 5]] for topic in range(20)],
        "prevalence": shares,
        "topics_alone": {name: [WORDS] * 5 for name in parties},
        "alone": dict.fromkeys(parties, figures),
        "shared_at_party": dict.fromkeys(parties, figures),
        "quality": {"npmi": 0.1, "held_out": 999.9},
    }


def shown(table: Any, width: int) -> str:
    out = io.StringIO()
    Screen(file=out, width=width).print(table)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("parties", [FIVE, MANY, MANY[:12]], ids=["5", "100", "12"])
def test_words_stay_whole_and_every_line_fits(width: int, parties: tuple[str, ...]) -> None:
    run = result(parties)
    for table, wanted in ((shared_topics(run, width), WORDS), (own_topics(run), WORDS), (quality(run), ["everybody's:"])):
        text = shown(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert set(wanted) <= set(text.split())
    for name in parties if len(parties) < 20 else ():
        assert name in shown(quality(run), width)


def test_with_many_parties_a_topic_names_those_where_it_is_strong() -> None:
    text = shown(shared_topics(result(MANY), 80), 80)
    assert "party-001" in text
    assert "▁" not in text
    assert "party-050" not in text  # nothing is strong there
    assert len(text.splitlines()) < 90


def test_with_few_parties_there_is_a_column_for_each() -> None:
    text = shown(shared_topics(result(FIVE), 80), 80)
    assert "█" in text
    assert "1 standard library" in " ".join(text.split())


@pytest.mark.parametrize(
    ("found", "merged", "says"),
    [
        (49, "n_topics", ("49 different topics, since", "the 10 asked for, merged", "--set model.merged=all keeps all 49")),
        (49, "all", ("49 different topics", "keeps them all", "10 were asked for")),
        (1, "n_topics", ("1 different topic; the model has the 10 asked for",)),
    ],
)
def test_a_run_of_the_matched_form_says_how_many_topics_there_are_and_why(
    found: int, merged: str, says: tuple[str, ...]
) -> None:
    said = sentence("run.matched", {"found": found, "asked": 10, "merged": merged})
    assert all(part in said for part in says), said
