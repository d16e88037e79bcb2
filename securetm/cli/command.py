"""How a function becomes a command: its options, what it shows, its JSON document, its exit code.

A parameter `Annotated[type, "Help."]` is an option; behind `ARGUMENT` it is an argument. Beside the help may stand other names
(`"--name"`), and, in a mapping, anything more that typer knows of a parameter.

A parameter that is a dataclass stands for one option of each of its fields. A parameter `Annotated[dict[str, Any],
OptionsOf(schema)]` gets those of the schema's fields that were given. A parameter `Output` is where the command shows what it
found; the command then takes `--json`, and what the function returns is the document.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from securetm.cli.options import ARGUMENT
from securetm.data_classes import dataclass
from securetm.foreign_text import json_text, printable
from securetm.reports.files import output_named
from securetm.stages import InLines, ShownLate

if TYPE_CHECKING:
    from securetm.reports.terminal import Bars, Screen

Json = Annotated[bool, "--json", "Print one JSON document on stdout, and the tables on stderr."]


@dataclass
class Output:
    """Where a command shows results, notes and progress. With `--json` results stand on standard error, too."""

    json: bool = False
    exit_code: int = 0

    @property
    def results(self) -> Screen:
        """Standard output, or standard error where the JSON document alone stands on standard output."""
        from securetm.reports.terminal import results

        return results(self.json)

    @property
    def screen(self) -> Screen:
        """Standard error, for notes on what the command does."""
        from securetm.reports.terminal import screen

        return screen()

    def note(self, said: str) -> None:
        self.screen.print(said, markup=False)

    def bars(self) -> Bars | InLines:
        """Progress of what takes long."""
        if not sys.stderr.isatty():
            return InLines(lambda line: sys.stderr.write(f"{printable(line)}\n"))
        from securetm.reports.terminal import Bars

        return Bars(self.screen)

    def late_bars(self) -> ShownLate:
        """Progress of what mostly takes no time."""
        return ShownLate(self.bars)

    def busy(self, doing: str) -> AbstractContextManager[Any]:
        """A line at a terminal, while the block runs."""
        return self.screen.status(doing) if not self.json and self.screen.is_terminal else nullcontext()

    def document(self, content: Any) -> None:
        """Prints the JSON document where it was asked for. A number that is not finite becomes null, as JSON has no NaN."""
        if not self.json:
            return
        encoding = sys.stdout.encoding or "utf-8"
        spelt = not encoding.lower().startswith("utf")  # escapes are valid JSON in every encoding
        with output_named():
            sys.stdout.write(json_text(json.dumps(_finite(content), ensure_ascii=spelt, indent=2, allow_nan=False)) + "\n")
            sys.stdout.flush()  # here, where a reader that has gone can still be distinguished from a failure


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def agreed_to(question: str) -> bool:
    """Asks at a terminal, on standard error, as standard output may be one JSON document. Nobody is asked anywhere else."""
    if not sys.stdin.isatty():
        return False
    typer.echo(f"{printable(question)} [y/N] ", nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# ---- from functions to commands --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptionsOf:
    """Options of the fields of a schema, none of which has to be given."""

    schema: type[Any]


@dataclass(frozen=True)
class Command:
    """A command: what it does, the arguments of its example, and its line in the list of a group."""

    run: Callable[..., Any]
    example: str
    name: str
    summary: str

    def __call__(self, *given: Any, **named: Any) -> Any:
        """As the function itself."""
        return self.run(*given, **named)

    def add_to(self, app: typer.Typer, before: str, summary: str = "") -> None:
        example = f"Example: {before} {self.name} {self.example}"
        app.command(self.name, short_help=summary or self.summary, epilog=example)(typed(self.run))


def command(example: str) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a command; its docstring is the help. `application.py` has its line in the list of all."""
    return member("", example)


def member(summary: str, example: str, name: str = "") -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a command of a group, which has the function's name where none is given."""
    return lambda run: Command(run, example, name or run.__name__.replace("_", "-"), summary)


@dataclass(frozen=True)
class Group:
    """Commands behind one word. Alone, the word prints their list, unless `about` does something else."""

    name: str
    commands: Sequence[Command | Group]
    about: Callable[..., Any]  # its docstring is the help
    example: str = ""  # the arguments of another example than the first command's
    summary: str = ""

    def add_to(self, app: typer.Typer, before: str, summary: str = "") -> None:
        own, words = typer.Typer(rich_markup_mode=None, add_completion=False), f"{before} {self.name}"
        first = self.commands[0]
        example = self.example or (f"{first.name} {first.example}" if isinstance(first, Command) else "")
        own.callback(invoke_without_command=True, epilog=f"Example: {words} {example}")(typed(self.about))
        for one in self.commands:
            one.add_to(own, words)
        app.add_typer(own, name=self.name, short_help=summary or self.summary)


def help_alone(context: typer.Context) -> None:
    """Prints the list of commands where none is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def typed(run: Callable[..., Any]) -> Callable[..., Any]:
    own = inspect.signature(run, eval_str=True).parameters
    spread = {name: _options(one) for name, one in own.items()}
    shows = next((name for name, one in own.items() if one.annotation is Output), "")
    last = [*(spread[name] for name in spread if name != shows), spread.get(shows, [])]  # of the output: --json
    options = [option.replace(annotation=_as_typer(option.annotation)) for each in last for option in each]

    @functools.wraps(run)
    def called(**given: Any) -> None:
        to = Output(given.pop("json", False)) if shows else Output()
        values = {name: _value(one, [o.name for o in spread[name]], given) for name, one in own.items() if name != shows}
        found = run(**values, **({shows: to} if shows else {}))
        if found is not None:
            to.document(found)
        if to.exit_code:
            raise typer.Exit(to.exit_code)

    called.__signature__ = inspect.Signature([one.replace(kind=one.KEYWORD_ONLY) for one in options])  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in options}
    del called.__wrapped__  # typer would read the function's own annotations
    return called


def _schema(one: inspect.Parameter) -> tuple[Any, bool]:
    """The dataclass whose fields are options in place of this parameter, and whether only given ones count."""
    if get_origin(one.annotation) is Annotated:
        found = next((more for more in get_args(one.annotation)[1:] if isinstance(more, OptionsOf)), None)
        return (found.schema, True) if found else (None, False)
    return (
        (one.annotation, False) if dataclasses.is_dataclass(one.annotation) and one.annotation is not Output else (None, False)
    )


def _options(one: inspect.Parameter) -> list[inspect.Parameter]:
    schema, only_given = _schema(one)
    if one.annotation is Output:
        return [inspect.Parameter("json", one.KEYWORD_ONLY, default=False, annotation=Json)]
    if schema is None:
        return [one]
    hints, found = get_type_hints(schema, include_extras=True), []
    for part in dataclasses.fields(schema):
        kind, default = hints[part.name], part.default
        if only_given:
            inner, *more = get_args(kind)
            kind, default = Annotated[(inner | None, *more)], None
        found.append(inspect.Parameter(part.name, one.KEYWORD_ONLY, default=default, annotation=kind))
    return found


def _as_typer(kind: Any) -> Any:
    """An annotation with the option or argument that its texts and mappings say."""
    inner, *parts = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    texts = [part for part in parts if isinstance(part, str)]
    if not texts:
        return kind
    named = [text for text in texts if text.startswith("-")]
    more = {name: value for part in parts if isinstance(part, Mapping) for name, value in part.items()}
    said = next(text for text in texts if not text.startswith("-"))
    made = typer.Argument(**more, help=said) if ARGUMENT in parts else typer.Option(*named, **more, help=said)
    return Annotated[inner, made]


def _value(one: inspect.Parameter, names: Sequence[str], given: dict[str, Any]) -> Any:
    schema, only_given = _schema(one)
    if schema is None:
        return given[one.name]
    values = {name: given[name] for name in names}
    return {name: value for name, value in values.items() if value is not None} if only_given else schema(**values)
