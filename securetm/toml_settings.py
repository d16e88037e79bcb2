"""Reads settings from TOML and the command line into frozen dataclasses. It knows no particular setting.

A misspelt name or a value of the wrong kind is refused, and the refusal names its place. Nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
import types
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from securetm.errors import BadSetting, Misuse, NoSuchPath, NotFound, Unreadable, UnreadableToml
from securetm.setting_mistakes import SETTING_OF, Mistakes

T = TypeVar("T")
_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list", Mapping: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parsed_toml(toml_bytes(path), str(path))


def toml_bytes(path: Path) -> bytes:
    """What such a file holds."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise NoSuchPath(str(path)) from problem
    except OSError as problem:
        raise Unreadable(str(path), problem.strerror or type(problem).__name__) from problem


def parsed_toml(content: bytes, where: str) -> dict[str, Any]:
    """The tables of a TOML text that came from there."""
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableToml(where, str(problem)) from problem


class CommandLineText(str):
    """A value typed after --set, where no quotes distinguish a text from a number."""

    __slots__ = ()


def from_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """The dataclass `cls` with the settings of one table; missing ones keep their defaults. All mistakes are told at once."""
    hints = _hints(cast(Hashable, cls))
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    mistakes, values = Mistakes(), dict[str, Any]()
    for name, value in table.items():
        with mistakes.kept():
            if name not in fields:
                raise NotFound(f"{SETTING_OF}{where}", name, tuple(sorted(fields)))
            values[name] = _converted(value, hints[name], where, name)
    needed = [name for name, field in fields.items() if field.default is field.default_factory is dataclasses.MISSING]
    for name in needed if table.keys() <= fields.keys() else ():  # else the missing one is probably the misspelt one
        with mistakes.kept():
            require(name in table, where, name, None)
    made = _made(cls, values, needed, mistakes, table.keys() - values.keys())
    mistakes.tell()
    return cast(T, made)


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


_hints = cache(get_type_hints)  # evaluating them takes longer than all the rest


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


def require_at_least(settings: object, where: str, **least: float) -> None:
    """Refuses each named setting that is below its least value."""
    for name, smallest in least.items():
        value = getattr(settings, name)
        require(value >= smallest, where, name, value, f"must be at least {smallest}")


def _shown(value: object) -> str:
    """A value as a plan would write it."""
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
    return _refuse(value, kinds[0], where, name) if fitted is None else fitted


def _matching(value: Any, kind: Any) -> Any:
    """The value as that kind, or None where it is of another."""
    origin = get_origin(kind) or kind
    if origin is tuple:
        inner = get_args(kind)[0]
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


def _refuse(value: Any, kind: Any, where: str, name: str) -> Any:
    origin = get_origin(kind) or kind
    origin = Mapping if origin is dict else origin
    table = f": give each of its entries as {name}.NAME=value" if origin is Mapping else ""
    raise BadSetting(where, name, repr(value), f"must be {_KINDS.get(origin, origin.__name__)}{table}")
