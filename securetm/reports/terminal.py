"""Consoles, how the blocks of a document look in a terminal, and progress bars, which show public facts only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, Self, cast

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from securetm.foreign_text import without_commands
from securetm.reports.document import Block, Document, Items, Line, Paragraph, Reply, Section, Table, lines_of, words_of
from securetm.reports.files import StandardOutput

WIDEST = 110  # a longer line is hard to read
STYLES = {
    "strong": "bold",
    "danger": "bold red",
    "alarm": "bold yellow",
    "hint": "yellow",
    "note": "dim",
    "good": "green",
    "bad": "red",
    "fine": "bold green",
    "verdict broken": "bold",
    "verdict open": "bold",
}


class Screen(Console):
    """A terminal that shows blocks of documents, and ignores control sequences in the text, which may come from any file."""

    def print(self, *objects: Any, **style: Any) -> None:
        """Prints blocks of documents, and whatever else rich can print."""
        super().print(*map(rendered, objects), **style)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders text without control sequences."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=without_commands(part.text))

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def screen() -> Screen:
    """Standard error, for progress and notes on what a command does."""
    return Screen(stderr=True, highlight=False)


def results(json: bool = False) -> Screen:
    """Standard output, for the results of a command; standard error if JSON alone may stand on standard output."""
    return screen() if json else Screen(file=cast("IO[str]", StandardOutput()), highlight=False)


def rendered(block: Any) -> Any:
    """A block as rich shows it; anything else as it is. Of a document, what is folded or stands aside is left out."""
    match block:
        case Paragraph(text, kind):
            return line_text(text, STYLES.get(kind, ""))
        case Items(items, title):
            head = [Text(f"{title}:", style="bold")] if title else []
            return Group(*head, *(Padding(line_text(("• ", *words_of(item))), (0, 0, 0, 2)) for item in items))
        case Reply(question, mark, short, said):
            return Group(Text.assemble((question, "bold"), f" {short} ", (f"({mark})", "bold")), rendered(Items(said)))
        case Table():
            return rich_table(block)
        case Section(title, blocks):
            return Group(Text(f"\n{title}", style="bold"), *map(rendered, blocks))
        case Document():
            shown = (one for one in block.sections if not (one.folded or one.aside))
            return Group(Text(block.title, style="bold"), Text(block.subtitle, style="dim"), *map(rendered, shown))
        case _:
            return block


def show(blocks: Iterable[Block | Document], to: Console) -> None:
    for block in blocks:
        to.print(rendered(block))


def rich_table(table: Table, **style: Any) -> RichTable:
    """A table of a document. Where some columns are upright, the others stand in the last one, below each other."""
    upright, wide = table.upright or len(table.columns), table.kind == "lines" and bool(table.shares)
    heads = (*table.columns[:upright], *filter(None, [", ".join(table.columns[upright:])]))
    columns = (
        Column(
            Text(name),
            justify="right" if place in table.numeric else "left",
            no_wrap=place < table.upright or place in table.whole,
            overflow="fold",
            ratio=round(100 * table.shares[place]) if wide else None,
        )
        for place, name in enumerate(heads)
    )
    style = {"show_lines": table.kind == "lines", "show_header": table.kind != "facts", "expand": wide, **style}
    shown = titled(Text(table.title), *columns, caption=Text(table.caption), **style)
    for row in table.rows:
        below = tuple(line for cell in row[upright:] for line in lines_of(cell))
        cells = []
        for cell in (*row[:upright], *([below] if below else [])):
            first, *rest = lines_of(cell)
            cells.append(Text("\n").join([line_text(first), *(line_text(line, "dim") for line in rest)]))
        shown.add_row(*cells)
    return shown


def titled(title: str | Text, *columns: Column | str, caption: str | Text = "", **style: Any) -> RichTable:
    """An empty table with bold heads; title and caption stand on the left."""
    style = {"header_style": "bold", "title_justify": "left", "caption_justify": "left", **style}
    return RichTable(*columns, title=title or None, caption=caption or None, **style)


def line_text(line: Line, style: str = "") -> Text:
    parts = ((one.text.replace("\N{NO-BREAK SPACE}%", "%"), STYLES.get(one.kind, style)) for one in words_of(line))
    return Text.assemble(*parts)  # a space that does not break would break the word before it


# ---- progress, with the time left -----------------------------------------------------------------------------------

_BAR, _WIDE = 20, 110  # characters of a bar; a terminal at least this wide gets a bar twice as long
_FIGURES = 35  # characters behind the bar: steps, time spent, time left
_SHORTEST = 16  # characters of a title


class Bars:
    """One bar for each stage of a run."""

    def __init__(self, to: Console) -> None:
        # a narrow terminal shows the bar and the time left, and cuts the title of the stage
        title = Column(no_wrap=True, overflow="ellipsis", max_width=max(to.width - _FIGURES - _BAR, _SHORTEST))
        said, bar = TextColumn("{task.description}", table_column=title), BarColumn(_BAR if to.width < _WIDE else 2 * _BAR)
        columns = (said, bar, MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=to, refresh_per_second=5)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._progress.stop()

    def stage(self, title: str, total: int) -> None:
        """Begins a stage, and ends the one before it."""
        if self._task is None:
            self._progress.start()  # not earlier: a command that is refused at once shows no bar
        else:
            before = self._progress.tasks[self._task]
            self._progress.update(self._task, total=before.completed or 1, completed=before.completed or 1)
        self._task = self._progress.add_task(title, total=total)

    def step(self, done: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done)
