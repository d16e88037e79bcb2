"""The sheet in the terminal, and of its annex the marks, recommendation, five answers and what was not tried."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from securetm.reports.signed.report_paper import LEFT_UNTRIED, Block, Items, Paper, Paragraph, Reply, TextTable, ToFillIn
from securetm.reports.signed.sheet_marks import shown_digest
from securetm.reports.signed.verified_statement import Compared

_SHOWN = 4  # sections: marks, recommendation, questions, what was spent; and what was not tried


def show_sheet(sheet: Paper, to: Console) -> None:
    """Prints the sheet, without its table of files and the lines to fill in."""
    to.print(f"[bold]{escape(sheet.title)}[/bold]")
    to.print(sheet.subtitle, markup=False, style="dim")
    for section in sheet.sections:
        if not any(isinstance(block, ToFillIn | TextTable) for block in section.blocks):
            to.print(f"\n[bold]{escape(section.title)}[/bold]")
            for block in section.blocks:
                _show(block, to)
    to.print()


def show_compared(found: Compared, to: Console) -> None:
    """Prints what came out when a sheet was compared with all that it speaks of."""
    for text in found.changed:
        to.print(f"CHANGED: {text}", markup=False, highlight=False)
    if found.same:
        to.print(f"As they were: {', '.join(found.same)}.", markup=False, highlight=False)
    if found.absent:
        to.print(f"Not here, so compared with nothing: {', '.join(found.absent)}.", markup=False, highlight=False)
    to.print(f"The statement: {shown_digest(found.statement)}", markup=False, highlight=False)


def show_paper(paper: Paper, to: Console) -> None:
    """Prints the part that answers the questions."""
    to.print(f"[bold]{escape(paper.title)}[/bold]")
    to.print(paper.subtitle, markup=False, style="dim")
    for number, section in enumerate(paper.sections):
        if number < _SHOWN or section.title == LEFT_UNTRIED:
            to.print(f"\n[bold]{escape(section.title)}[/bold]")
            for block in section.blocks:
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
