"""Collects the mistakes of a file of settings, and adds the file and the line to each. It knows no setting.

A file with five mistakes is refused once, with all five, as far as one mistake does not hide the next.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from securetm.errors import BadSetting, Misuse, NotFound, SettingMistakes
from securetm.toml_lines import KeyPath, lines_of

SETTING_OF = "setting of "  # begins the kind of what is not found, where it is the name of a setting
_TABLE = re.compile(
    r"\[+([\w.-]+)\]+(?: (?:number )?(\d+)\b| ([\w-]+))?"
)  # `[training]`, `[[adversary]] number 2`, `[[mechanism]] clip`


class Mistakes:
    """The mistakes that were found so far."""

    def __init__(self) -> None:
        self._found: list[Misuse] = []

    @contextmanager
    def kept(self, *kinds: type[Misuse]) -> Iterator[None]:
        """Keeps a mistake that the block raises, and goes on behind the block. Of other kinds than settings, only these."""
        of_kind: tuple[type[Misuse], ...] = (BadSetting, NotFound, *kinds)
        try:
            yield
        except SettingMistakes as several:
            self._add(several.mistakes)
        except of_kind as mistake:
            self._add((mistake,))

    def tell(self) -> None:
        """Raises what was found: one mistake as it is, several together."""
        if len(self._found) > 1:
            raise SettingMistakes(tuple(self._found))
        for mistake in self._found:
            raise mistake

    def _add(self, found: tuple[Misuse, ...]) -> None:
        said = {str(mistake) for mistake in self._found}
        self._found += [mistake for mistake in found if str(mistake) not in said]


@contextmanager
def placed(path: Path | None, elsewhere: Collection[str] = ()) -> Iterator[None]:
    """Adds the file and the line to the mistakes of the block. `elsewhere`: the settings that did not come from the file."""
    try:
        yield
    except SettingMistakes as several:
        raise SettingMistakes(_with_places(several.mistakes, path, elsewhere)) from several
    except (BadSetting, NotFound) as mistake:
        raise _with_places((mistake,), path, elsewhere)[0] from mistake


def _with_places(mistakes: tuple[Misuse, ...], path: Path | None, elsewhere: Collection[str]) -> tuple[Misuse, ...]:
    """The mistakes in the order of the lines, each with its place, unless it has one or is not of this file."""
    try:
        text = path.read_text("utf-8") if path else ""
        content = tomllib.loads(text)
    except (OSError, ValueError):  # it was changed meanwhile
        return mistakes
    lines = {at: line for at, line in lines_of(text).items() if ".".join(_names(at)) not in elsewhere}
    found = [(_line(mistake, lines, content), mistake) for mistake in mistakes]
    ordered = sorted(found, key=lambda one: one[0] or len(text))
    return tuple(dataclasses.replace(one, at=f"{path}, line {line}") if line else one for line, one in ordered)  # type: ignore[call-arg]


def _line(mistake: Misuse, lines: Mapping[KeyPath, int], content: Mapping[str, Any]) -> int:
    """The line that the mistake is on; 0 where none can be named, or the mistake has its place."""
    if not isinstance(mistake, BadSetting | NotFound) or mistake.at:
        return 0
    if isinstance(mistake, NotFound) and not mistake.kind.startswith(SETTING_OF):
        return next((line for at, line in lines.items() if _value(content, at) == mistake.name), 0)
    where = mistake.where if isinstance(mistake, BadSetting) else mistake.kind.removeprefix(SETTING_OF)
    table = _table(where, content)
    if isinstance(mistake, BadSetting) and mistake.value is None:
        return lines.get(table, 0)
    name = tuple(mistake.name.split("."))
    found = [at for at in lines if _names(at)[-len(name) :] == name]
    likely = min(found, key=lambda at: (at[: len(table)] != table, len(at)), default=())
    return lines.get(likely, 0)


def _table(where: str, content: Mapping[str, Any]) -> KeyPath:
    """The path of the table that is called so in a message; the whole file where it names none."""
    named = _TABLE.search(where)
    if named is None:
        return ("model",) if where.isidentifier() else ()  # a class: only models name theirs
    path: KeyPath = tuple(named[1].split("."))
    entries = content.get(named[1])
    if not isinstance(entries, list):
        return path
    if named[2]:
        return (*path, int(named[2]) - 1)
    kinds = [entry.get("kind") for entry in entries if isinstance(entry, Mapping)]
    return (*path, kinds.index(named[3])) if named[3] in kinds else path


def _names(path: KeyPath) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))


def _value(content: Any, path: KeyPath) -> Any:
    for part in path:
        content = content[part]
    return content
