"""A document as Markdown. Words from documents, runs or plans cannot become markup."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from securetm.figures import Figure
from securetm.foreign_text import markdown_text, printable
from securetm.reports.document import (
    Bars,
    Block,
    Document,
    Fold,
    Heading,
    Items,
    Line,
    Paragraph,
    Reply,
    Table,
    ToFillIn,
    in_comment,
    lines_of,
    numbers_of,
    plain,
)


def in_markdown(document: Document) -> str:
    parts = [f"# {markdown_text(document.title)}", markdown_text(document.subtitle)]
    parts += [f"Belongs to it: [{markdown_text(name)}](<{quote(name)}>)" for name in document.annexes]
    for section in document.sections:
        parts += [f"## {markdown_text(section.title)}", *map(_block, section.blocks)]
    parts += [markdown_text(document.foot), in_comment(document.marks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _block(block: Block) -> str:
    match block:
        case Table():
            return _table(block)
        case Figure():
            return _table(numbers_of(block))
        case Fold(title, blocks):
            return "\n\n".join((f"### {_line(title)}", *map(_block, blocks)))
        case Reply(question, mark, short, said):
            return f"### {markdown_text(question)}\n\n**{markdown_text(short)}** ({mark})\n\n{_bullets(said)}"
        case ToFillIn(lines):
            return "\n".join(("| | |", "|---|---|", *(f"| {line} | {_BLANK} |" for line in lines)))
        case _:
            return _text(block)


def _text(block: Paragraph | Heading | Items | Bars) -> str:
    match block:
        case Paragraph(text, "code"):
            return f"    {printable(' '.join(plain(text).split()))}"  # after four spaces nothing is markup
        case Paragraph(text, kind):
            return f"**{_line(text)}**" if kind == "strong" else _line(text)
        case Heading(text, level):
            return f"{'#' * level} {markdown_text(text)}"
        case Items(items):
            return _bullets(items)
        case Bars(bars):
            return _bullets([f"{plain(bar.label[0])}: {bar.said}" for bar in bars])


_BLANK = r"\_" * 12


def _table(table: Table) -> str:
    rows = ([markdown_text("; ".join(map(plain, lines_of(cell)))) for cell in row] for row in table.rows)
    lines = ([markdown_text(name) for name in table.columns], ["---"] * len(table.columns), *rows)
    below = f"\n\n{markdown_text(table.caption)}" if table.caption else ""
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + below


def _bullets(lines: Sequence[Line]) -> str:
    return "\n".join(f"- {_line(one)}" for one in lines)


def _line(line: Line) -> str:
    return markdown_text(plain(line))
