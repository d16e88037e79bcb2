"""The page to sign as Markdown. It shows what report_paper.py says, and nothing else."""

from __future__ import annotations

from urllib.parse import quote

from securetm.foreign_text import markdown_text
from securetm.reports.signed.report_paper import Block, Items, Paper, Paragraph, Reply, TextTable, ToFillIn
from securetm.reports.signed.sheet_marks import in_comment


def in_markdown(paper: Paper) -> str:
    """The text of the page."""
    parts = [f"# {markdown_text(paper.title)}", markdown_text(paper.subtitle)]
    parts += [f"Belongs to it: [{markdown_text(name)}](<{quote(name)}>)" for name in paper.annexes]
    for section in paper.sections:
        parts += [f"## {markdown_text(section.title)}", *map(_block, section.blocks)]
    parts += [one for one in (markdown_text(paper.foot), in_comment(paper.marks)) if one]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, strong, _):
            return f"**{markdown_text(text)}**" if strong else markdown_text(text)
        case Items(items):
            return _bullets(items)
        case TextTable(names, rows, _):
            head, *body = (tuple(map(markdown_text, row)) for row in (names, *rows))
            lines = [head, ("---",) * len(names), *body]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Reply(question, mark, short, said):
            return f"### {markdown_text(question)}\n\n**{markdown_text(short)}** ({mark})\n\n{_bullets(said)}"
        case ToFillIn(lines):
            return "\n".join(("| | |", "|---|---|", *(f"| {line} | \\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_ |" for line in lines)))


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {markdown_text(item)}" for item in items)
