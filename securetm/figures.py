"""Tables and figures as numbers, before anybody decides how they look: the calculator computes them, and reports show them."""

from __future__ import annotations

from typing import Any

from securetm.data_classes import dataclass


@dataclass(frozen=True)
class ReportTable:
    """Rows of words and numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Curve:
    """One line of a figure."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Figure:
    """Lines over two axes, which letters and dashes distinguish."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    marked: tuple[float, float] | None = None
    mark: str = "the setting asked about"  # what the marked point is
    square: bool = False  # both axes are alike, and a diagonal is drawn
    diagonal: str = ""  # its name
    decades: int = 0  # both axes are logarithmic, from ten to this negative power to one; 0: they are not
    allowed: Curve | None = None  # the most that is allowed, dotted
