"""A sheet or an annex as a page, as text and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from urllib.parse import quote

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from securetm.foreign_text import html_text, markdown_text
from securetm.reports.audit_markup import STYLE, Html, bullets, grid, section
from securetm.reports.audit_tables import plain_table
from securetm.reports.pages import framed, on_each_sheet
from securetm.reports.statement.annex import LEFT_UNTRIED
from securetm.reports.statement.marks import in_comment
from securetm.reports.statement.paper import Block, Items, Paper, PaperSection, Paragraph, Reply, TextTable, ToFillIn

_STYLE = (
    STYLE
    + """
body { max-width: 60rem; margin: .8rem auto; font-size: .95rem; line-height: 1.31 }
h1 { margin: 0 0 .2rem; overflow-wrap: anywhere }
h2 { margin: .65rem 0 .2rem } p { margin: .2rem 0 } ul { margin: .3rem 0; padding-left: 1.2rem }
.reply { border-top: 1px solid var(--rule); padding: .25rem 0; break-inside: avoid }
.reply h3 { margin: 0; display: inline } .reply p { margin: 0 } .reply ul { font-size: .85rem; margin: .1rem 0 }
.reply .short { font-weight: 600 } .mark { border: 1px solid var(--ink); border-radius: .2rem; padding: 0 .35rem;
  font: .8rem system-ui, Helvetica, Arial, sans-serif; white-space: nowrap }
.mark.broken { background: var(--ink); color: var(--paper) } .mark.open { border-width: 2px; font-weight: 700 }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 1.6rem 2rem; margin-top: 1.6rem; break-inside: avoid }
.sign div { border-top: 1px solid var(--ink); font-size: .85rem; color: var(--soft); padding-top: .1rem }
table { font-size: .8rem } th, td { padding: .15rem .6rem .15rem 0 } summary h2 { display: inline; font-size: .95rem }
details { margin: .25rem 0 } details[open] { padding-bottom: .4rem }
@media (max-width: 44rem) { .sign { grid-template-columns: 1fr } }
@media print { @page { margin: 14mm } body { font-size: 9pt } table { font-size: 8pt } .reply ul { font-size: 8pt }
  details { border: 0; padding: 0 } section { break-inside: auto } }
"""
)

_ONE_SHEET = """
h1 { font-size: 1.2rem } ul { margin: .1rem 0 } li { margin: 0 }
@media print { @page { size: A4; margin: 10mm 13mm 12mm } body { font-size: 8pt; line-height: 1.22 } table { font-size: 7pt }
  h2 { margin: .35rem 0 .1rem; font-size: 9pt } blockquote { margin: .2rem 0; font-size: 9pt } p { margin: .1rem 0 }
  .sign { gap: 1.1rem 2rem; margin-top: 1.2rem } footer { display: none } }
"""

_ITSELF = "This page loads nothing and sends nothing. Its figures are those of the run's own record."


def in_html(paper: Paper) -> str:
    """The text of the page."""
    number = count(1)
    links = ", ".join(f'<a href="{html_text(quote(name))}">{html_text(name)}</a>' for name in paper.annexes)
    annex = f"<p class=note>Belongs to it: {links}</p>" if links else ""
    foot = f"<p>{html_text(paper.foot)}</p>" if paper.foot else ""
    parts = (
        f"<header><h1>{html_text(paper.title)}</h1>\n<p class=note>{html_text(paper.subtitle)}</p>{annex}</header>",
        "<main>",
        *(_section(f"part-{next(number)}", each) for each in paper.sections),
        "</main>",
        f"<footer>{foot}<p>{_ITSELF}</p></footer>",
        in_comment(paper.marks),
    )
    return framed(paper.title, parts, _STYLE + (_ONE_SHEET if paper.one_sheet else "") + on_each_sheet(paper.foot))


def _section(anchor: str, each: PaperSection) -> Html:
    inner = [_block(block) for block in each.blocks]
    if not each.folded:
        return section(anchor, each.title, *inner)
    body = "\n".join(inner)
    return Html(f'<details id="{anchor}"><summary><h2>{html_text(each.title)}</h2></summary>\n{body}</details>')


def _block(block: Block) -> Html:
    match block:
        case Paragraph(text, strong, _):
            return Html(f"<blockquote>{html_text(text)}</blockquote>" if strong else f"<p>{html_text(text)}</p>")
        case Items(items):
            return bullets(items)
        case TextTable(names, rows, _):
            return grid(plain_table(names, rows))
        case Reply():
            return _reply(block)
        case ToFillIn(lines):
            return Html('<div class="sign">' + "".join(f"<div>{html_text(line)}</div>" for line in lines) + "</div>")


def _reply(reply: Reply) -> Html:
    first, *rest = reply.said
    mark = f'<span class="mark {html_text(reply.mark.split()[0])}">{html_text(reply.mark)}</span>'
    short = f'<span class="short">{html_text(reply.short)}</span>'
    head = f"<h3>{html_text(reply.question)}</h3> {short} {mark}"
    return Html(f'<div class="reply">{head}<p>{html_text(first)}</p>{bullets(rest)}</div>')


def in_markdown(paper: Paper) -> str:
    """The text of the page."""
    parts = [f"# {markdown_text(paper.title)}", markdown_text(paper.subtitle)]
    parts += [f"Belongs to it: [{markdown_text(name)}](<{quote(name)}>)" for name in paper.annexes]
    for part in paper.sections:
        parts += [f"## {markdown_text(part.title)}", *map(_block_of_text, part.blocks)]
    parts += [one for one in (markdown_text(paper.foot), in_comment(paper.marks)) if one]
    return "\n\n".join(parts) + "\n"


def _block_of_text(block: Block) -> str:
    match block:
        case Paragraph(text, strong, _):
            return f"**{markdown_text(text)}**" if strong else markdown_text(text)
        case Items(items):
            return _bullets_of_text(items)
        case TextTable(names, rows, _):
            head, *body = (tuple(map(markdown_text, row)) for row in (names, *rows))
            lines = [head, ("---",) * len(names), *body]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Reply(question, mark, short, said):
            return f"### {markdown_text(question)}\n\n**{markdown_text(short)}** ({mark})\n\n{_bullets_of_text(said)}"
        case ToFillIn(lines):
            return "\n".join(("| | |", "|---|---|", *(f"| {line} | \\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_\\_ |" for line in lines)))


def _bullets_of_text(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {markdown_text(item)}" for item in items)


_SHOWN = 4  # sections: marks, recommendation, questions, what was spent; and what was not tried


def show_sheet(sheet: Paper, to: Console) -> None:
    """Prints the sheet, without its table of files and the lines to fill in."""
    to.print(f"[bold]{escape(sheet.title)}[/bold]")
    to.print(sheet.subtitle, markup=False, style="dim")
    for part in sheet.sections:
        if not any(isinstance(block, ToFillIn | TextTable) for block in part.blocks):
            to.print(f"\n[bold]{escape(part.title)}[/bold]")
            for block in part.blocks:
                _show(block, to)
    to.print()


def show_paper(paper: Paper, to: Console) -> None:
    """Prints the part that answers the questions."""
    to.print(f"[bold]{escape(paper.title)}[/bold]")
    to.print(paper.subtitle, markup=False, style="dim")
    for number, part in enumerate(paper.sections):
        if number < _SHOWN or part.title == LEFT_UNTRIED:
            to.print(f"\n[bold]{escape(part.title)}[/bold]")
            for block in part.blocks:
                if number == 0 and isinstance(block, TextTable):
                    to.print(_table(block))
                else:
                    _show(block, to)


def _table(block: TextTable) -> Table:
    """The marks: other tables are on the page."""
    table = Table(*(Column(name, overflow="fold") for name in block.names))
    for row in block.rows:
        table.add_row(*map(Text, row))
    return table


def _show(block: Block, to: Console) -> None:
    match block:
        case Paragraph(text, strong, _):
            to.print(text, markup=False, style="bold" if strong else "")
        case Items(items):
            _show_items(items, to)
        case Reply(question, mark, short, said):
            to.print(f"[bold]{escape(question)}[/bold] {escape(short)} [bold]({mark})[/bold]")
            _show_items(said, to)
        case _:  # tables and lines to fill in are on the page
            pass


def _show_items(items: Sequence[str], to: Console) -> None:
    for item in items:
        to.print(Padding(Text(f"• {item}"), (0, 0, 0, 2)))
