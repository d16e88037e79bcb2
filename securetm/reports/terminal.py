"""Consoles, and the tables and lists that every screen is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Column, Table

from securetm.foreign_text import without_commands
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


def titled(title: str, *columns: Column | str, caption: str = "", **style: Any) -> Table:
    """An empty table with bold heads; title and caption stand on the left."""
    style = {"header_style": "bold", "title_justify": "left", "caption_justify": "left", **style}
    return Table(*columns, title=title or None, caption=caption or None, **style)


def show_list(title: str, sentences: Sequence[str], to: Console) -> None:
    """A bold title and one line for each sentence; nothing if there are none."""
    if sentences:
        to.print(f"[bold]{title}:[/bold]")
    for sentence in sentences:
        to.print(f"  • {escape(sentence)}")
