"""Figures as pictures: panels of curves, bars or points with intervals, as SVG for a page and as PNG.

An SVG takes its colours from the page, light or dark; a PNG is light.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from lab.measuring import Row

_INK, _RULE = "#010101", "#020202"
_SERIES = tuple(f"#0a0a{n:02d}" for n in range(10, 18))
_LIGHT = ("#0f766e", "#1d4ed8", "#b45309", "#be185d", "#6d28d9", "#4d7c0f", "#57534e", "#0b0f14")
_DARK = ("#5eead4", "#93c5fd", "#fbbf24", "#f9a8d4", "#c4b5fd", "#bef264", "#d6d3d1", "#ffffff")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.6)), (0, (6, 2, 1, 2)))
_SHAPES = ("o", "s", "^", "D", "v", "P")
_PANEL, _ALONE, _ACROSS = (410, 270), (640, 290), 2  # pixels of a panel, and of one that stands alone; panels beside each other
_TALLER = 80  # pixels of a panel of points, of which many lie above each other
_DOTS, _ONE_PLACE = 2, 12  # dots of a pixel; points that are nearer look like one
_LEGEND, _LINE, _SAMPLE, _LETTER = 19, 14, 62, 7  # pixels: a line of the legend, of text; beside a name; a letter, about
_NEEDLESS = (  # all but the shapes of points, whose names are an m and digits
    r' id="(?!m[0-9a-f]+")[^"]*"| clip-path="[^"]*"|<clipPath.*?</clipPath>|<defs>\s*</defs>|<metadata>.*?</metadata>'
    r'|font-family: [^;"]*;? ?'
)
_FONTS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that places are the same everywhere
    "font.size": 11,
    "text.parse_math": False,
    "axes.facecolor": "none",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size", "xtick.minor.size", "ytick.minor.size"), 0),
}


def figures_of(result: Row) -> dict[str, list[Row]]:
    """The plots of a result by the figure of the paper that they belong to."""
    figures: dict[str, list[Row]] = {}
    for plot in result["plots"]:
        figures.setdefault(plot["figure"], []).append(plot)
    return figures


def svg(title: str, plots: Sequence[Row], across: int = _ACROSS) -> str:
    """The figure as a drawing that stands alone or in a page, in the colours of either; `across` panels beside each other."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawn = io.StringIO()
    drawing = _drawing(plots, _INK, _RULE, _SERIES, across)
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": "securetm" if across == _ACROSS else "narrow"}):  # two in a page
        FigureCanvasSVG(drawing).print_svg(drawn, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    wide, tall = (round(side * 72) for side in drawing.get_size_inches())
    said = "; ".join(f"{plot['title']}: {plot['y']} by {plot['x']}, of {', '.join(_named(plot))}" for plot in plots)
    head = f'<svg class="drawn paper" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" role="img" '
    named = f'aria-label="{escape(said)}" font-family="{_FONTS}">'
    back = f'<rect x="0" y="0" width="{wide}" height="{tall}" rx="14" fill="var(--back)"/>'
    return (
        "\n".join([head + named, f"<title>{escape(title)}</title>", f"<style>{_scheme()}</style>", back, _inner(drawn)])
        + "\n</svg>\n"
    )


def png(plots: Sequence[Row]) -> bytes:
    """The figure on white, at twice the size of the page's."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn, drawing = io.BytesIO(), _drawing(plots, "#1b2733", "#94a3b1", _LIGHT)
    drawing.set_facecolor("white")
    FigureCanvasAgg(drawing).print_png(drawn, metadata={"Software": None}, pil_kwargs={"dpi": (144, 144)})
    return drawn.getvalue()


def _scheme() -> str:
    """Colours by the page's scheme; alone, by the system's."""
    light, dark = (
        "{ "
        + " ".join(f"--{name}: {colour};" for name, colour in (*base, *((f"s{n}", one) for n, one in enumerate(of))))
        + " }"
        for base, of in (
            ((("ink", "#1b2733"), ("line", "#94a3b1"), ("back", "#f3f6f8")), _LIGHT),
            ((("ink", "#e6edf3"), ("line", "#66778a"), ("back", "#131b24")), _DARK),
        )
    )
    return (
        f".paper {light} @media (prefers-color-scheme: dark) {{ .paper {dark} }} "
        f'[data-md-color-scheme="default"] .paper {light} [data-md-color-scheme="slate"] .paper {dark}'
    )


def _inner(drawn: io.StringIO) -> str:
    text = drawn.getvalue()
    begin = text.index("</defs>", text.index("<style")) + len("</defs>")
    inner = re.sub(_NEEDLESS, "", text[begin : text.rindex("</svg>")], flags=re.DOTALL)
    inner = re.sub(r'="[^"]*"', lambda found: re.sub(r"(\.\d)\d+", r"\1", found[0]).replace("\n", " "), inner)
    named = {_INK: "ink", _RULE: "line", **{colour: f"s{n}" for n, colour in enumerate(_SERIES)}}
    for colour, name in named.items():
        inner = inner.replace(colour, f"var(--{name})")
    return re.sub(r"\n\s*", "\n", inner.replace("xlink:href", "href")).strip()


# ---- the drawing ---------------------------------------------------------------------------------------------------------


def _drawing(plots: Sequence[Row], ink: str, rule: str, colours: Sequence[str], across: int = _ACROSS) -> Any:
    import matplotlib
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for plot in plots for name in _named(plot)))
    shapes = list(dict.fromkeys(point["shape"] for plot in plots for point in plot.get("points", ())))
    panel, high = _PANEL if len(plots) > 1 or across < _ACROSS else _ALONE
    high += _TALLER if shapes else 0
    across = min(across, len(plots))
    plots = [{**plot, "x": wrap(plot["x"], (panel - 24) // 6)} for plot in plots]
    low = 48 + _LINE * max(len(plot["x"]) - 1 for plot in plots)
    high += low - 48
    noted = list(dict.fromkeys(plot["noted"] for plot in plots if "noted" in plot))
    wide, listed = across * panel, names + shapes + noted
    beside = len(plots) % across > 0  # the last row has a free place, and room for the names
    columns = min(len(listed), max(1, (panel if beside else wide) // (_SAMPLE + _LETTER * max(map(len, listed)))))
    tall = -(-len(plots) // across) * high + (0 if beside else -(-len(listed) // columns) * _LEGEND + 12)
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink)
    looks = {n: {"color": colours[k % len(colours)], "linestyle": _DASHES[k % len(_DASHES)]} for k, n in enumerate(names)}
    with matplotlib.rc_context({**_STYLE, **inks, "grid.color": rule}):
        drawing = Figure(figsize=(wide / 72, tall / 72), dpi=144, facecolor="none")
        for place, plot in enumerate(plots):
            left, top = place % across * panel, place // across * high
            box = (left + 62) / wide, 1 - (top + high - low) / tall, (panel - 86) / wide, (high - low - 52) / tall
            axes = drawing.add_axes(box)
            if "points" in plot:
                _points(axes, plot, looks, shapes)
            else:
                (_bars if plot.get("bars") else _lines)(axes, plot, looks)
                _marked(axes, plot)
            _framed(axes, plot)
        legend: dict[str, Any] = {"ncols": columns, "frameon": False, "handlelength": 2.6, "borderaxespad": 0.2}
        legend |= (
            {"loc": "center", "bbox_to_anchor": (1 - panel / 2 / wide, high / 2 / tall)} if beside else {"loc": "lower center"}
        )
        drawing.legend([*_samples(plots, looks), *_shapes(len(shapes), ink), *_notes(len(noted), ink)], listed, **legend)
    return drawing


def _samples(plots: Sequence[Row], looks: Row) -> list[Any]:
    """What stands beside each name of the legend: a piece of its curve, its bar or its point."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    filled = {name for plot in plots if plot.get("bars") for name in plot["lines"]}
    dotted = {name for plot in plots if "points" in plot for name in _named(plot)}
    form: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 8}
    return [
        Patch(color=look["color"])
        if name in filled
        else Line2D([], [], **{**look, **(form if name in dotted else {"linewidth": 2.4})})
        for name, look in looks.items()
    ]


def _shapes(count: int, ink: str) -> list[Any]:
    from matplotlib.lines import Line2D

    form: dict[str, Any] = {"linestyle": "", "markersize": 8, "color": ink, "fillstyle": "none"}
    return [Line2D([], [], marker=_SHAPES[n], **form) for n in range(count)]


def _notes(count: int, ink: str) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.textpath import TextPath

    form: dict[str, Any] = {"linestyle": "", "markersize": 13, "color": ink, "markeredgewidth": 0}
    return [Line2D([], [], marker=TextPath((0, 0), "3"), **form) for _ in range(count)]


def _lines(axes: Any, plot: Row, looks: Row) -> None:
    if plot.get("log"):
        axes.set_xscale("log")
    for name, points in plot["lines"].items():
        shown = sorted(zip(points, plot["away"][name], strict=True), key=lambda pair: float(pair[0][0]))
        dots = {"marker": "o", "markersize": 5, "markeredgewidth": 0}
        axes.plot([x for (x, _), _ in shown], [y for (_, y), _ in shown], linewidth=2, clip_on=False, **dots, **looks[name])
        for (x, y), away in shown:
            _interval(axes, x, y, away, looks[name]["color"])


def _named(plot: Row) -> list[str]:
    return list(plot["lines"]) if "lines" in plot else list(dict.fromkeys(point["of"] for point in plot["points"]))


def _points(axes: Any, plot: Row, looks: Row, shapes: list[str]) -> None:
    """Points with intervals both ways; their areas grow with the logarithm of their size."""
    axes.set_xlim(left=-0.1 * plot["most"], right=plot["most"])
    axes.set_ylim(0, 1.1)
    axes.grid(axis="x", linewidth=0.6)
    for points in _places(axes, plot["points"]):
        colours = list(dict.fromkeys(looks[point["of"]]["color"] for point in points))
        for point in points:
            colour, (x, low, high), (y, under, over) = looks[point["of"]]["color"], point["x"], point["y"]
            axes.plot([low, high], [y, y], linewidth=1, color=colour)
            axes.plot([x, x], [under, over], linewidth=1, color=colour)
            _mark(axes, point, _SHAPES[shapes.index(point["shape"])], colour, colours)
        if notes := dict.fromkeys(point["note"] for point in points if point.get("note")):
            (x, _, _), (y, _, _) = points[0]["x"], points[0]["y"]
            side, align = ((1, "left"), (-1, "right"))[shapes.index(points[0]["shape"]) % 2]  # many lie above each other
            away = {"xytext": (side * (_width(points[0]) / 2 + 1), 1.5), "textcoords": "offset points", "ha": align}
            axes.annotate(", ".join(notes), (x, y), size=7.5, **away)


def _width(point: Row) -> float:
    return 6 + 0.8 * math.log2(1 + 100 * float(point["size"]))


def _mark(axes: Any, point: Row, shape: str, colour: str, colours: Sequence[str]) -> None:
    """The mark, or its stripe where marks of several colours lie in one place, so that none hides another."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D, Bbox, ScaledTranslation

    style = MarkerStyle(shape)
    outline = Path(style.get_path().transformed(style.get_transform()).to_polygons()[0])
    stripe = colours.index(colour)
    edges = [n / len(colours) - 0.5 for n in (stripe, stripe + 1)]
    wide = outline.get_extents().width
    part = outline.clip_to_bbox(Bbox([[edges[0] * wide, -1], [edges[1] * wide, 1]])) if len(colours) > 1 else outline
    drawing = axes.get_figure()
    there = ScaledTranslation(point["x"][0], point["y"][0], axes.transData)
    place = Affine2D().scale(_width(point) / 72) + drawing.dpi_scale_trans + there
    axes.add_patch(PathPatch(part, transform=place, color=colour, alpha=0.75, linewidth=0, clip_on=False, zorder=2.5))


def _places(axes: Any, points: Sequence[Row]) -> list[list[Row]]:
    """The points by place: those of a shape that look like one are together."""
    found: list[list[Row]] = []
    for point in points:
        here = axes.transData.transform((point["x"][0], point["y"][0]))
        for near in found:
            there = axes.transData.transform((near[0]["x"][0], near[0]["y"][0]))
            if near[0]["shape"] == point["shape"] and math.dist(here, there) < _ONE_PLACE:
                near.append(point)
                break
        else:
            found.append([point])
    return found


def _bars(axes: Any, plot: Row, looks: Row) -> None:
    from matplotlib.patches import Rectangle

    width = 0.8 / len(plot["lines"])
    for order, (name, points) in enumerate(plot["lines"].items()):
        for (x, y), away in zip(points, plot["away"][name], strict=True):
            left = x - 0.4 + order * width
            axes.add_patch(Rectangle((left, 0), 0.9 * width, y, color=looks[name]["color"], linewidth=0, clip_on=False))
            _interval(axes, left + 0.45 * width, y, away, axes.spines["left"].get_edgecolor())
    axes.autoscale_view()


def _interval(axes: Any, x: float, y: float, away: float | None, colour: Any) -> None:
    if away:
        axes.plot([x, x], [y - away, y + away], linewidth=1.3, color=colour, clip_on=False)


def _marked(axes: Any, plot: Row) -> None:
    """Marks of the places that curves or bars have."""
    from matplotlib.ticker import NullLocator

    places = sorted({float(x) for points in plot["lines"].values() for x, _ in points})
    marks = {x: f"{x:g}" for x in places} | {float(x): name for x, name in enumerate(plot.get("marks", ()), 1)}
    axes.xaxis.set_minor_locator(NullLocator())
    shown = list(marks) if "marks" in plot else _apart(axes, marks)
    axes.xaxis.set_ticks(shown, [marks[x] for x in shown])


def _framed(axes: Any, plot: Row) -> None:
    """The axes with their names and title."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5))
    if plot.get("bars"):
        axes.set_ylim(bottom=0)
    axes.grid(axis="y", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("\n".join(plot["x"]))
    axes.set_title(plot["title"], loc="left", size=12, pad=24)
    axes.text(0, 1.03, plot["y"], transform=axes.transAxes, size=10)


def _apart(axes: Any, marks: Mapping[float, str]) -> list[float]:
    """The marks that have room beside each other: the first, and each that lies far enough from the one before."""
    axes.autoscale_view()
    kept = list(marks)[:1]
    for x in list(marks)[1:]:
        here, before = (float(axes.transData.transform((place, 0))[0]) for place in (x, kept[-1]))
        if here - before > _DOTS * _LETTER * (len(marks[x]) + len(marks[kept[-1]])) / 2 + 4:
            kept.append(x)
    return kept
