"""Consoles, and the tables and lists that every screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from securetm.foreign_text import without_commands
from securetm.reports.document import Block, Cell, Document, Items, Line, Paragraph, Reply, Table, lines_of, words_of
from securetm.reports.files import StandardOutput


class Screen(Console):
    """A terminal that ignores control sequences in the text it shows, which may come from any file."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders text without control sequences."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=without_commands(part.text))

    def on_broken_pipe(self) -> None:
        """Raises the error that rich would turn into an exit."""
        raise BrokenPipeError


def screen() -> Console:
    """Standard error, for progress and notes on what a command does."""
    return Screen(stderr=True, highlight=False)


def results(json: bool = False) -> Console:
    """Standard output, for the results of a command; standard error if JSON alone may stand on standard output."""
    return screen() if json else Screen(file=cast(IO[str], StandardOutput()), highlight=False)


def titled(title: str, *columns: Column | str, caption: str = "", **style: Any) -> RichTable:
    """An empty table with bold heads; title and caption stand on the left."""
    style = {"header_style": "bold", "title_justify": "left", "caption_justify": "left", **style}
    return RichTable(*columns, title=title or None, caption=caption or None, **style)


def rich_table(table: Table, **style: Any) -> RichTable:
    """A table of a document. Where some columns are upright, the others stand in the last one, below each other."""
    upright = table.upright or len(table.columns)
    heads = (*table.columns[:upright], *filter(None, [", ".join(table.columns[upright:])]))
    columns = (
        Column(
            escape(name),
            justify="right" if place in table.numeric else "left",
            no_wrap=place < table.upright,
            overflow="fold",
        )
        for place, name in enumerate(heads)
    )
    shown = titled(escape(table.title), *columns, caption=escape(table.caption), **{"title_style": "bold", **style})
    for row in table.rows:
        below = tuple(line for cell in row[upright:] for line in lines_of(cell))
        shown.add_row(*(_cell(one) for one in (*row[:upright], *([below] if below else []))))
    return shown


def _cell(cell: Cell) -> Text:
    first, *rest = lines_of(cell)
    return Text("\n").join([line_text(first), *(line_text(line, "dim") for line in rest)])


def line_text(line: Line, style: str = "") -> Text:
    """A line for the terminal."""
    parts = (
        (one.text.replace("\N{NO-BREAK SPACE}%", "%"), _KINDS.get(one.kind, style)) for one in words_of(line)
    )  # rich would break it
    return Text.assemble(*parts)


_KINDS = {"strong": "bold", "verdict broken": "bold", "verdict open": "bold"}


def show_list(title: str, sentences: Sequence[str], to: Console) -> None:
    """A bold title and one line for each sentence; nothing if there are none."""
    if sentences:
        to.print(f"[bold]{title}:[/bold]")
    for sentence in sentences:
        to.print(f"  • {escape(sentence)}")


def show_document(document: Document, to: Console) -> None:
    """Prints a document, without what is folded or stands aside on its page."""
    to.print(f"[bold]{escape(document.title)}[/bold]")
    to.print(document.subtitle, markup=False, style="dim")
    for section in document.sections:
        if not (section.folded or section.aside):
            to.print(f"\n[bold]{escape(section.title)}[/bold]")
            for block in section.blocks:
                _show(block, to)


def _show(block: Block, to: Console) -> None:
    match block:
        case Paragraph(text, kind):
            to.print(line_text(text, "bold" if kind == "strong" else ""))
        case Items(items):
            _show_items(items, to)
        case Reply(question, mark, short, said):
            to.print(f"[bold]{escape(question)}[/bold] {escape(short)} [bold]({mark})[/bold]")
            _show_items(said, to)
        case Table():
            to.print(rich_table(block))


def _show_items(items: Sequence[Line], to: Console) -> None:
    for item in items:
        to.print(Padding(line_text(("• ", *words_of(item))), (0, 0, 0, 2)))
