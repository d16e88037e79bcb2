"""What a sheet and its annex are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paragraph:
    """A text; a strong one stands out, and one that is kept stays on the sheet of what follows."""

    text: str
    strong: bool = False
    kept: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences or parts of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class TextTable:
    """A table of texts. The first column names the row; on a sheet each column takes its share of the width."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Reply:
    """One question with its answer."""

    question: str
    mark: str
    short: str
    said: tuple[str, ...]


@dataclass(frozen=True)
class ToFillIn:
    """Lines that a hand fills in."""

    lines: tuple[str, ...]


Block = Paragraph | Items | TextTable | Reply | ToFillIn


@dataclass(frozen=True)
class PaperSection:
    """A part of the page. A screen may fold what is beside its point; a print shows it."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True)
class Paper:
    """The whole page."""

    title: str
    subtitle: str
    sections: tuple[PaperSection, ...]
    annexes: tuple[str, ...] = ()  # the files that belong to it and are written beside
    foot: str = ""  # of every sheet
    marks: tuple[str, ...] = ()  # that bind it to its annex, or to the sheet that it is an annex of
    day: str = ""  # on which it was made, as 2026-11-24
    one_sheet: bool = False
