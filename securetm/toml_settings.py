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
from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from securetm.errors import BadSetting, NoSuchPath, NotFound, Unreadable, UnreadableToml

T = TypeVar("T")
_KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list", Mapping: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as problem:
        raise NoSuchPath(str(path)) from problem
    except OSError as problem:
        raise Unreadable(str(path), problem.strerror or type(problem).__name__) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableToml(str(path), str(problem)) from problem


class CommandLineText(str):
    """A value typed after --set, where no quotes distinguish a text from a number."""

    __slots__ = ()


def from_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """The dataclass `cls` with the settings of one table; missing ones keep their defaults."""
    hints = _hints(cast(Hashable, cls))
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    for name in table:
        if name not in fields:
            raise NotFound(f"setting of {where}", name, tuple(sorted(fields)))
    for name, field in fields.items():
        if name not in table and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise BadSetting(where, name, None)
    return cls(**{name: _converted(value, hints[name], where, name) for name, value in table.items()})


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
