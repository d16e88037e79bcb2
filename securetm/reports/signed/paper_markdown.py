"""The page to sign as Markdown. It shows what report_paper.py says, and nothing else."""

from __future__ import annotations

import re

from securetm.reports.signed.report_paper import Block, Items, Paper, Paragraph, Reply, TextTable, ToFillIn
from securetm.reports.signed.sheet_marks import in_comment

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")


def in_markdown(paper: Paper) -> str:
    """The text of the page."""
    parts = [f"# {_safe(paper.title)}", _safe(paper.subtitle)]
    parts += [f"Belongs to it: [{_safe(name)}](<{name}>)" for name in paper.annexes]
    for section in paper.sections:
        parts += [f"## {_safe(section.title)}", *map(_block, section.blocks)]
    parts += [one for one in (_safe(paper.foot), in_comment(paper.marks)) if one]
    return "\n\n".join(parts) + "\n"


def _safe(text: str) -> str:
    """The text, in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split(" ")).replace("\n", " "))


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, strong, _):
            return f"**{_safe(text)}**" if strong else _safe(text)
        case Items(items):
            return _bullets(items)
        case TextTable(names, rows, _):
            lines = [names, tuple("---" for _ in names), *rows]
            return "\n".join("| " + " | ".join(_safe(cell) if cell != "---" else cell for cell in row) + " |" for row in lines)
        case Reply(question, mark, short, said):
            return f"### {_safe(question)}\n\n**{_safe(short)}** ({mark})\n\n{_bullets(said)}"
        case ToFillIn(lines):
            return "\n".join(("| | |", "|---|---|", *(f"| {line} | \\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_ |" for line in lines)))


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {_safe(item)}" for item in items)
