"""A document as data: sections of blocks, which terminal, page, Markdown and PDF show alike.

Whoever composes a report fills these in, and adds no markup; how a block looks is each form's own affair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from securetm.data_classes import dataclass
from securetm.figures import Figure, ReportTable
from securetm.wording import upward


@dataclass(frozen=True)
class Words:
    text: str
    kind: str = ""  # "strong"; "whole" is never broken; "missed" and "wrong" words of an example; "tiles"
    to: str = ""  # the anchor or the file to which it leads


Line = str | Words | tuple[str | Words, ...]
Cell = str | tuple[Line, ...]  # a line, and smaller lines below it


@dataclass(frozen=True)
class Paragraph:
    """A text; one that is `kept` stays on the sheet of what follows."""

    text: Line
    kind: str = ""  # "strong", "note", "warning", "figure" (the one that counts most), "code"
    kept: bool = False


@dataclass(frozen=True)
class Heading:
    """A title within a section, of level 3 or 4."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Items:
    items: tuple[Line, ...]
    title: str = ""  # in a terminal


@dataclass(frozen=True)
class Table:
    """Columns by name and rows of cells; the first cell of a row names it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    title: str = ""
    kind: str = ""  # "facts": names and texts without a head, and a caption for screen readers; "matrix"; "lines" between rows
    numeric: Collection[int] = ()  # columns that stand to the right
    whole: Collection[int] = ()  # columns that are never broken
    upright: int = 0  # a narrow terminal puts all columns but so many first ones into one, below each other; 0: none
    shares: tuple[float, ...] = ()  # of the width of a sheet, for each column


@dataclass(frozen=True)
class Bar:
    """One result on an axis from 0 to 1: its place, its interval and what it is compared with. None: there is none."""

    label: tuple[Line, ...]
    said: str  # the same in words, for a screen reader
    at: float | None = None
    low: float = 0.0
    high: float = 0.0
    ideal: float | None = None
    chance: float | None = None
    limit: float | None = None  # from here on it counts as success
    beyond: bool = False  # the interval goes on beyond the edge


@dataclass(frozen=True)
class Bars:
    """Results on one axis, with the marks below it: place and text."""

    bars: tuple[Bar, ...]
    marks: tuple[tuple[float, str], ...]
    caption: str = ""


@dataclass(frozen=True)
class Reply:
    question: str
    mark: str
    short: str
    said: tuple[str, ...]


@dataclass(frozen=True)
class ToFillIn:
    """Lines that a hand fills in."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Fold:
    """What is folded under its title on a screen; a print unfolds it unless it is `spare`."""

    title: Line
    blocks: tuple[Block, ...]
    anchor: str
    unfolded: bool = False
    spare: bool = False


Block = Paragraph | Heading | Items | Table | Figure | Bars | Reply | ToFillIn | Fold


@dataclass(frozen=True)
class Section:
    """A part of the document. A page may fold what is beside its point; a print shows it."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False
    aside: bool = False  # a terminal leaves it out, as all that is folded
    anchor: str = ""


@dataclass(frozen=True)
class Document:
    """The whole of it."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    kind: str = ""  # of its style: "audit", "sheet" (which has to be one), "annex", "budget"
    annexes: tuple[str, ...] = ()  # the files that belong to it and are written beside
    foot: str = ""  # of every sheet
    ending: tuple[str, ...] = ()  # below everything, on a page
    marks: tuple[str, ...] = ()  # that bind it to its annex, or to the sheet that it is an annex of
    day: str = ""  # on which it was made, as 2026-11-24
    contents: bool = False  # whether links to the sections stand below the first one


def words_of(line: Line) -> tuple[Words, ...]:
    parts = line if isinstance(line, tuple) else (line,)
    return tuple(one if isinstance(one, Words) else Words(one) for one in parts)


def plain(line: Line) -> str:
    """A line without what stands out in it."""
    return "".join(one.text for one in words_of(line))


def lines_of(cell: Cell) -> tuple[Line, ...]:
    return cell if isinstance(cell, tuple) else (cell,)


def table_of(found: ReportTable) -> Table:
    """A table of the calculator: budgets are rounded upwards, and columns of numbers stand to the right."""
    numeric = (
        place for place in range(len(found.columns)) if all(isinstance(row[place], int | float | None) for row in found.rows)
    )
    rows = tuple(tuple(cell(value) for value in row) for row in found.rows)
    return Table(found.columns, rows, found.caption, found.title, numeric=tuple(numeric))


def cell(value: Any) -> str:
    """A value in a table: a budget is rounded upwards, a missing value is a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return upward(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def numbers_of(figure: Figure) -> Table:
    places = sorted({x for line in figure.curves for x, _ in line.points})
    known = [dict(line.points) for line in figure.curves]
    columns = (figure.x, *named_curves(figure))
    rows = tuple((f"{x:,.10g}", *(points.get(x) for points in known)) for x in places)
    return table_of(ReportTable("", columns, rows, "The same as numbers."))


def named_curves(figure: Figure) -> tuple[str, ...]:
    several = len(figure.curves) > 1 or figure.square
    return tuple(f"{letter(n)}: {one.name}" if several else one.name for n, one in enumerate(figure.curves))


def letter(order: int) -> str:
    return chr(ord("A") + order % 26)


def paragraphs(texts: Iterable[str], kind: str = "") -> tuple[Paragraph, ...]:
    return tuple(Paragraph(text, kind) for text in texts if text)


def items(sentences: Sequence[Line], title: str = "") -> tuple[Items, ...]:
    """A list, or nothing where there is no sentence."""
    return (Items(tuple(sentences), title),) if sentences else ()


def in_comment(marks: tuple[str, ...]) -> str:
    """Marks as a comment of HTML or Markdown, on a line of its own."""
    return f"<!-- {', '.join(marks)} -->" if marks else ""
