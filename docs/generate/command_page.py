"""Writes docs/reference/commands.md from the command line itself: `python -m docs.generate.command_page`."""

from __future__ import annotations

import inspect
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from docs.generate.folder_pages import ROOT
from docs.generate.markdown import code, listed, page

FILE = ROOT / "docs" / "reference" / "commands.md"
SEVERAL = 2
_VALUES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH"}


@dataclass(frozen=True)
class Command:
    """One command as it is registered."""

    name: str
    summary: str
    epilog: str
    callback: Callable[..., Any]

    @property
    def anchor(self) -> str:
        """Where it stands on the page."""
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Parameter:
    """One argument or option of a command."""

    names: tuple[str, ...]
    value: str
    meaning: str
    is_option: bool


def commands() -> list[Command]:
    """Every command, by its whole name, in the order of `--help`; a group's commands stand together."""
    from securetm.cli.application import application

    return list(_below(application(), "securetm"))


def command_page() -> str:
    """Every command with its arguments and options."""
    found = commands()
    return page(
        "# Commands",
        "This page is made from the command line by `python -m docs.generate.command_page`. "
        "Every command takes `--json` (one JSON document on standard output, tables on standard error) and `--help`. "
        "Commands exit with 0 for fine, 1 for a gap, 2 for misuse and 3 for a failure "
        "([errors](../../securetm/errors.py)). `securetm --install-completion` lets your shell (bash, zsh, fish or "
        "PowerShell) complete commands, options, profiles, models and folders of runs.",
        listed(f"[`{one.name}`](#{one.anchor}): {one.summary}" for one in found),
        "## Options of several commands",
        "A command that refers to them means this.",
        listed(sorted(_shared())),
        *(part for one in found for part in _told(one)),
    )


@cache
def _shared() -> frozenset[str]:
    """The options of several commands, which are explained once."""
    lines = Counter(_line(part) for one in commands() for part in _parameters(one.callback) if part.is_option)
    return frozenset(line for line, times in lines.items() if times >= SEVERAL and not line.startswith("`--json`"))


def _below(app: Any, above: str) -> Iterator[Command]:
    for one in app.registered_commands:
        name = one.name or one.callback.__name__.replace("_", "-")
        yield Command(f"{above} {name}", one.short_help or _first(one.callback), one.epilog or "", one.callback)
    for group in app.registered_groups:
        yield from _below(group.typer_instance, f"{above} {group.name or group.typer_instance.info.name}")


def _first(callback: Callable[..., Any]) -> str:
    return (inspect.getdoc(callback) or "").partition("\n")[0]


def _told(command: Command) -> Iterator[str]:
    parameters = [one for one in _parameters(command.callback) if one.names != ("--json",)]
    yield f"## {command.name}"
    yield "\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(command.callback) or "").split("\n\n"))
    yield listed(_line(one) for one in parameters if not one.is_option)
    yield listed(line for one in parameters if one.is_option and (line := _line(one)) not in _shared())
    shared = [code(one.names[0]) for one in parameters if _line(one) in _shared()]
    yield f"As [above](#options-of-several-commands): {', '.join(shared)}." if shared else ""
    if command.epilog:
        yield f"Example: `{command.epilog.removeprefix('Example: ')}`"


def _line(one: Parameter) -> str:
    value = _VALUES.get(one.value.strip(), one.value.strip()) if one.is_option else ""
    return f"{code(' '.join((', '.join(one.names), value)).strip())}: {one.meaning}"


def _parameters(callback: Callable[..., Any]) -> Iterator[Parameter]:
    hints = typing.get_type_hints(callback, include_extras=True)
    for name, given in inspect.signature(callback).parameters.items():
        kind, info = typing.get_args(hints[name])[:2]
        is_option = type(info).__name__ == "OptionInfo"
        stated = (info.default, *(info.param_decls or ()))  # in an annotation, typer keeps the first name as the default
        declared = tuple(part for one in stated if isinstance(one, str) for part in one.split("/") if part.startswith("-"))
        names = declared or (f"--{name.rstrip('_').replace('_', '-')}" if is_option else name.upper(),)
        yield Parameter(names, info.metavar or _kind(kind), _meaning(info.help or "", given.default), is_option)


def _kind(kind: Any) -> str:
    several = isinstance(kind, types.UnionType) or typing.get_origin(kind) is list
    names = [_kind(part) for part in typing.get_args(kind)] if several else [getattr(kind, "__name__", str(kind)).lower()]
    return " ".join(name for name in names if name not in ("nonetype", "bool"))


def _meaning(said: str, default: Any) -> str:
    if default is inspect.Parameter.empty:
        return f"{said} Required."
    return said + (
        f" Default: `{default}`."
        if default != "" and isinstance(default, str | int | float) and not isinstance(default, bool)
        else ""
    )


if __name__ == "__main__":
    FILE.write_text(command_page(), "utf-8")
