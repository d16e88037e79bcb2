"""The page to sign as a PDF of A4 sheets. It shows what report_paper.py says, and nothing else.

The same facts make the same bytes: no date and no random identifier is written. A letter that the standard fonts of PDF lack is
written as its number. reportlab writes the file; it is installed with `securetm[pdf]`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any
from xml.sax.saxutils import escape

from securetm.reports.report_errors import PdfLibraryMissing
from securetm.reports.signed.report_paper import Block, Items, Paper, Paragraph, Reply, TextTable, ToFillIn

_INK, _SOFT, _RULE = "#000000", "#444444", "#bbbbbb"
_MARGIN, _FOOT = 42, 30  # points
_FONTS = "Helvetica", "Helvetica-Bold"
_HIGH = 40  # points for a hand to write in
_PADDING = 12  # points that a sheet leaves free beside its text


def check_library() -> None:
    """Refuses where reportlab is not installed, before anything is carried out."""
    try:
        import_module("reportlab.platypus")
    except ImportError as problem:
        raise PdfLibraryMissing from problem


def in_pdf(paper: Paper) -> bytes:
    """The file."""
    check_library()
    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import SimpleDocTemplate

    made = io.BytesIO()
    margins = {f"{side}Margin": _MARGIN for side in ("left", "right", "top", "bottom")}
    document = SimpleDocTemplate(
        made, pagesize=A4, **margins, title=_plain(paper.title), author="securetm", lang="en", invariant=1, pageCompression=1
    )
    foot = partial(_foot, _plain(paper.title))
    document.build(list(_flow(paper, document.width - _PADDING)), onFirstPage=foot, onLaterPages=foot)
    return made.getvalue()


def _plain(text: str) -> str:
    """The text in the letters of the standard fonts."""
    return text.encode("cp1252", "backslashreplace").decode("cp1252")


def _foot(title: str, canvas: Any, document: Any) -> None:
    canvas.saveState()
    canvas.setFont(_FONTS[0], 7)
    canvas.drawString(_MARGIN, _FOOT, title[:100])
    canvas.drawRightString(document.pagesize[0] - _MARGIN, _FOOT, f"sheet {document.page}")
    canvas.restoreState()


# ---- the sections --------------------------------------------------------------------------------------------------


def _flow(paper: Paper, width: float) -> Iterator[Any]:
    yield _text(paper.title, 14, bold=True, after=2)
    yield _text(paper.subtitle, 8, colour=_SOFT)
    if paper.annexes:
        yield _text(f"Annex, the technical page: {', '.join(paper.annexes)}", 8, colour=_SOFT)
    for section in paper.sections:
        yield _text(section.title, 10.5, bold=True, before=6, after=2, keep=True)
        yield from (one for block in section.blocks for one in _block(block, width))


def _text(
    text: str,
    size: float = 8.5,
    *,
    bold: bool = False,
    colour: str = _INK,
    before: float = 0,
    after: float = 2,
    keep: bool = False,
) -> Any:
    """A paragraph; `keep` keeps it on the sheet of what follows."""
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph as Flowable

    style = ParagraphStyle(
        "own",
        fontName=_FONTS[bold],
        fontSize=size,
        leading=size * 1.22,
        textColor=colour,
        spaceBefore=before,
        spaceAfter=after,
        splitLongWords=1,
        keepWithNext=keep,
    )
    return Flowable(escape(_plain(text)), style)


def _block(block: Block, width: float) -> list[Any]:
    match block:
        case Paragraph(text, strong):
            return [_text(text, 10 if strong else 8.5, bold=strong, keep=block.kept)]
        case Items(items):
            return [_item(item) for item in items]
        case TextTable():
            return [_table(block, width)]
        case Reply():
            return _reply(block)
        case ToFillIn(lines):
            return [_to_fill_in(lines, width)]


def _item(text: str, size: float = 8) -> Any:
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph as Flowable

    style = ParagraphStyle(
        "item", fontName=_FONTS[0], fontSize=size, leading=size * 1.2, leftIndent=9, bulletIndent=1, spaceAfter=1
    )
    return Flowable(escape(_plain(text)), style, bulletText="\N{BULLET}")


def _reply(reply: Reply) -> list[Any]:
    first, *rest = reply.said
    head = _text(f"{reply.question} {reply.short} [{reply.mark}]", 9, bold=True, before=3, after=1, keep=True)
    return [head, _text(first, 8, after=1, keep=True), *(_item(one, 7.5) for one in rest)]


def _table(table: TextTable, width: float) -> Any:
    from reportlab.platypus import Table

    head = [_text(name, 7, bold=True) for name in table.names]
    rows = [[_text(cell, 7.5, after=0) for cell in row] for row in table.rows]
    made = Table([head, *rows], colWidths=[share * width for share in table.shares], repeatRows=1)
    made.setStyle(
        [
            ("LINEBELOW", (0, 0), (-1, 0), 0.8, _INK),
            ("LINEBELOW", (0, 1), (-1, -1), 0.3, _RULE),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 1),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 1.5),
        ]
    )
    return made


def _to_fill_in(lines: tuple[str, ...], width: float) -> Any:
    from reportlab.platypus import Table

    pairs = [[_text(line, 7.5, colour=_SOFT) for line in lines[at : at + 2]] for at in range(0, len(lines), 2)]
    table = Table(pairs, colWidths=[width / 2] * 2, rowHeights=_HIGH)
    table.setStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEABOVE", (0, 0), (-1, -1), 0.5, _INK)])
    table.spaceBefore = _HIGH
    return table
