"""Settings in TOML and on the command line, read into frozen dataclasses; every mistake is told with its file and line."""

from __future__ import annotations

import codecs
import dataclasses
import hashlib
import json
import math
import re
import tomllib
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from securetm.data_classes import dataclass
from securetm.errors import BadSetting, Misuse, NoSuchPath, NotFound, SettingMistakes, Unreadable, UnreadableToml

T = TypeVar("T")
_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list", Mapping: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    return parsed_toml(file_bytes(path), str(path))


@contextmanager
def tables_of(path: Path | None, overrides: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables of a file, if there is one, with overrides such as {"training.rounds": 10}.

    Mistakes of the block are told with the lines of the file, but for those of overrides.
    """
    tables = read_toml(path) if path else {}
    for name, value in overrides.items():
        *sections, last = name.split(".")
        inner = tables
        for section in sections:
            inner = inner.setdefault(section, {})
            require(isinstance(inner, dict), "the plan", section, inner, f"must be a table [{section}]")
        inner[last] = value
    with placed(path, overrides):
        yield tables


def file_bytes(path: Path, most: int = -1) -> bytes:
    """What a file holds, or its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise NoSuchPath(str(path)) from problem
    except OSError as problem:
        raise Unreadable(str(path), problem.strerror or type(problem).__name__) from problem


def parsed_toml(content: bytes, where: str) -> dict[str, Any]:
    """The tables of a TOML text that came from there."""
    if content.startswith(codecs.BOM_UTF8):
        problem = "it begins with a byte-order mark, which some editors write unseen: save it as UTF-8 without one"
        raise UnreadableToml(where, problem)
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableToml(where, str(problem)) from problem


@dataclass(frozen=True)
class Limit:
    """What a setting may be beyond its type; it stands in the annotation of the setting."""

    allows: Callable[[Any], bool]
    said: str = ""  # what follows "it": "must be at least 1"
    known: tuple[str, ...] = ()  # all values that are allowed, where these can be listed


def at_least(least: float) -> Limit:
    """No value below that one."""
    return Limit(lambda value: value >= least, f"must be at least {least}")


def above(low: float) -> Limit:
    """Only values above that one."""
    return Limit(lambda value: value > low, f"must be above {low}")


def within(low: float, high: float, said: str = "") -> Limit:
    """Values between these two, or one of them."""
    return Limit(lambda value: low <= value <= high, f"must be {said or f'from {low:,} to {high:,}'}")


def one_of(*known: str) -> Limit:
    """One of these names; an empty one among them stands for a setting that is left open."""
    return Limit(lambda value: value in known, "", tuple(name for name in known if name))


def shaped(pattern: str, said: str) -> Limit:
    """Texts of that form, as a regular expression says it."""
    return Limit(lambda value: bool(re.fullmatch(pattern, value)), f"must be {said}")


class CommandLineText(str):
    """A value typed after --set, where no quotes distinguish a text from a number."""

    __slots__ = ()


NOT_IN_FILES = {"in_files": False}  # the metadata of a field that no table sets


class OwnTable:
    """A section that reads its own table, as its settings depend on the kind that it names."""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        raise NotImplementedError


def from_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """The dataclass `cls` with the settings of one table; missing ones keep their defaults. All mistakes are told at once.

    A setting that is a dataclass is a table [NAME] of its own, and one that is a tuple of them a list of tables [[NAME]].
    """
    hints = _hints(cast("Any", cls))
    fields = {one.name: one for one in dataclasses.fields(cls) if one.init and one.metadata.get("in_files", True)}  # type: ignore[arg-type]
    mistakes, values = Mistakes(), dict[str, Any]()
    for name, value in table.items():
        with mistakes.kept(Misuse):
            if name not in fields:
                raise NotFound(f"{SETTING_OF}{where}", name, tuple(sorted(fields)))
            values[name] = _section_or_setting(value, hints[name], where, name)
    needed = [name for name, field in fields.items() if field.default is field.default_factory is dataclasses.MISSING]
    for name in needed if table.keys() <= fields.keys() else ():  # else the missing one is probably the misspelt one
        with mistakes.kept():
            require(name in table, where, name, None)
    made = _made(cls, values, needed, mistakes, table.keys() - values.keys())
    mistakes.tell()
    return cast("T", made)


def _made(
    cls: type[T], values: Mapping[str, Any], needed: Sequence[str], mistakes: Mistakes, told: Collection[str]
) -> T | None:
    """The settings, checked by their class. Where it refuses one, that is kept and the others are tried with its default.

    What is wrong with the default of a setting that was `told` is not a mistake of the file.
    """
    if not values.keys() >= set(needed):
        return None
    try:
        return cls(**values)
    except BadSetting as mistake:
        with mistakes.kept():
            if mistake.name not in told:
                raise
        others = {name: value for name, value in values.items() if name != mistake.name}
        return _made(cls, others, needed, mistakes, {*told, mistake.name}) if len(others) < len(values) else None
    except Misuse:
        with mistakes.kept(Misuse):
            raise
        return None


@cache  # evaluating them takes longer than all the rest
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _section_or_setting(value: Any, hint: Any, where: str, name: str) -> Any:
    if dataclasses.is_dataclass(hint) and not isinstance(value, section := cast("Any", hint)):
        require(isinstance(value, Mapping), where, name, value, f"must be a table [{name}]")
        return section.of(value) if issubclass(section, OwnTable) else from_table(section, value, f"[{name}]")
    entry = get_args(hint)[0] if get_origin(hint) is tuple else None
    if not dataclasses.is_dataclass(entry):
        return checked_setting(value, hint, where, name)
    tables, mistakes, made = checked_setting(value, tuple[dict[str, Any], ...], where, name), Mistakes(), []
    for number, table in enumerate(tables, start=1):
        with mistakes.kept():
            made.append(from_table(cast("Any", entry), table, f"{where}, [[{name}]] number {number}"))
    mistakes.tell()
    return tuple(made)


def checked_setting(value: Any, hint: Any, where: str, name: str) -> Any:
    """The value as its annotation has it: of that kind, and within every limit. The items of a list keep their own limits."""
    kind, *limits = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    found = _converted(value, kind, where, name)
    for limit in (one for one in limits if isinstance(one, Limit)):  # beside it may stand how a command line shows it
        require(limit.allows(found), where, name, found, limit.said, limit.known)
    inner = get_args(kind)[0] if get_origin(kind) is tuple else None
    if get_origin(inner) is Annotated:
        found = tuple(checked_setting(item, inner, where, name) for item in found)
    return found


def digest(content: Any) -> bytes:
    """The hash of anything made of tables, lists, texts and numbers; equal content has equal hashes."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).digest()


def require(
    condition: bool, where: str, name: str, value: object, problem: str = "", known: tuple[str, ...] = (), instead: str = ""
) -> None:
    """Refuses a setting unless the condition holds. `problem` is what follows "it": "must be at least 1"; None is missing."""
    if not condition:
        raise BadSetting(where, name, None if value is None else _shown(value), problem, known, instead)


def check_limits(settings: object, where: str) -> None:
    """Refuses settings that were not read from a table, where one is beyond a limit in its annotation."""
    for name, hint in _hints(cast("Any", type(settings))).items():
        checked_setting(getattr(settings, name), hint, where, name)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(list(value)) if isinstance(value, tuple) else str(value)


def _converted(value: Any, kind: Any, where: str, name: str) -> Any:
    if isinstance(value, CommandLineText):
        value = _parsed(str(value), kind)
    if isinstance(value, Mapping) and get_origin(kind) in (Mapping, dict):
        inner = get_args(kind)[1]
        return {each: _converted(v, inner, where, f"{name}.{each}") if inner is not Any else v for each, v in value.items()}
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if value is None and type(None) in kinds:
        return None
    fitted = next((v for k in kinds if (v := _matching(value, k)) is not None), None)
    if fitted is None:
        origin = get_origin(kinds[0]) or kinds[0]
        origin = Mapping if origin is dict else origin
        table = f": give each of its entries as {name}.NAME=value" if origin is Mapping else ""
        raise BadSetting(where, name, repr(value), f"must be {_KINDS.get(origin, origin.__name__)}{table}")
    return fitted


def _matching(value: Any, kind: Any) -> Any:
    """The value as that kind, or None where it is of another."""
    origin = get_origin(kind) or kind
    if origin is tuple:
        inner = get_args(kind)[0]
        inner = get_args(inner)[0] if get_origin(inner) is Annotated else inner
        items = [_matching(v, inner) for v in value] if isinstance(value, list | tuple) else [None]
        return None if None in items else tuple(items)
    if origin is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    fits = isinstance(value, origin) and (origin is bool or not isinstance(value, bool))
    return value if fits else None


def _parsed(text: str, kind: Any) -> Any:
    """A number or truth value given as text on the command line; the text itself where it is neither."""
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if bool in kinds:
        return {"true": True, "false": False}.get(text.lower(), text)
    number = int if int in kinds else float if float in kinds else str
    try:
        return number(text)
    except ValueError:
        return text


# ---- mistakes, with their places --------------------------------------------------------------------------------------

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
        return next((line for at, line in lines.items() if reduce(getitem, at, cast("Any", content)) == mistake.name), 0)
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


# ---- the lines of a TOML file, which `tomllib` does not tell ----------------------------------------------------------

KeyPath = tuple[str | int, ...]  # names of tables and keys; numbers count the entries of arrays from 0


def lines_of(text: str) -> Mapping[KeyPath, int]:
    """The line, counted from 1, on which the statement begins that has each key first.

    Each statement is read by itself: it ends with the first line after which what is read is TOML.
    """
    lines, entries = dict[KeyPath, int](), dict[KeyPath, int]()  # and the number of the last entry of each array of tables
    table, begun, rows = KeyPath(), 0, text.replace("\r\n", "\n").split("\n")
    for end in range(1, len(rows) + 1):
        try:
            found = list(_paths(tomllib.loads("\n".join(rows[begun:end]))))
        except (tomllib.TOMLDecodeError, RecursionError):  # a value of several lines
            continue
        if rows[begun].lstrip().startswith("["):
            names, several = _names(found[-1]), found[-1][-1] == 0  # `[[name]]` is an array with one entry
            table = _inside_entries(names[:-1], entries) + names[-1:] if several else _inside_entries(names, entries)
            found = [table]
            if several:
                entries[table] = entries.get(table, -1) + 1
                found = [table := (*table, entries[table])]
        else:
            found = [(*table, *path) for path in found]
        for path in found:
            for length in range(1, len(path) + 1):
                lines.setdefault(path[:length], begun + 1)
        begun = end
    return lines


def _paths(content: Any, above: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of everything in a file's content, the deepest of a table last."""
    for name, inner in (
        content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    ):
        yield (*above, name)
        yield from _paths(inner, (*above, name))


def _inside_entries(path: KeyPath, entries: Mapping[KeyPath, int]) -> KeyPath:
    """The path with the number of the last entry behind each array of tables that it goes through."""
    whole: KeyPath = ()
    for name in path:
        whole = (*whole, name)
        if whole in entries:
            whole = (*whole, entries[whole])
    return whole
