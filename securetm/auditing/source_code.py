"""What a source file defines: for each definition a digest of its syntax tree, and what it names. It runs and imports no file.

A digest leaves out comments, docstrings, layout, imports and names of modules, so that it stays the same when a definition
moves. It is the same under every supported version of Python: empty fields are left out, since later versions add some.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_WITHOUT_MEANING = frozenset({"ctx", "kind", "type_comment"})  # these follow from the place of a node, or have no effect
_PLACE = re.compile(r"\bsecuretm(?:\.\w+)+(?::\w+)?")  # a module as text, with or without what is meant in it
_IMPORTS = (ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """A function, a class, a constant or a statement of a module."""

    digest: bytes
    names: frozenset[tuple[str, str]]  # each name that it uses, and the attribute of it that is used, or nothing
    places: frozenset[str]  # modules, or what is in them, that it holds as text


@dataclass(frozen=True)
class SourceText:
    """A file: what it defines by name, what runs when it is imported, and where each imported name comes from."""

    definitions: Mapping[str, Definition]
    statements: tuple[Definition, ...]
    imported: Mapping[str, tuple[str, str]]  # a name: the module, and the name in it; no name: the module itself


@cache
def code_of(path: Path) -> SourceText:
    """Reads a file once. A process that changes the file calls `code_of.cache_clear()`."""
    tree = ast.parse(path.read_text("utf-8"), filename=path.name)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    named, statements = dict[str, Definition](), list[Definition]()
    for node in tree.body:
        if isinstance(node, _IMPORTS) or _only_for_types(node):
            continue
        made, names = _definition(node), tuple(_assigned(node))
        named |= dict.fromkeys(names, made)
        statements += [] if names else [made]
    return SourceText(named, tuple(statements), dict(_imported(tree)))


def _only_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _assigned(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module gives to what it makes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def _definition(node: ast.stmt) -> Definition:
    words, names, places = list[str](), set[tuple[str, str]](), set[str]()
    _write(node, words)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            names.add((one.id, ""))
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
            names.add((one.value.id, one.attr))
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            places.update(_PLACE.findall(one.value))
    return Definition(hashlib.sha256("\n".join(words).encode()).digest(), frozenset(names), frozenset(places))


def _write(value: Any, words: list[str]) -> None:
    """One word for each node, field and constant, in the order of the source. A constant has its type: 1 is not "1"."""
    if isinstance(value, ast.AST):
        words.append(type(value).__name__)
        for field, held in ast.iter_fields(value):
            if held is not None and held != [] and field not in _WITHOUT_MEANING:
                words.append(field)
                _write(held, words)
        words.append(";")
    elif isinstance(value, list):
        words.append("[")
        for one in value:
            if not isinstance(one, _IMPORTS):
                _write(one, words)
        words.append("]")
    elif isinstance(value, str):
        words.append(f"str {_PLACE.sub(_last, value)!a}")
    else:
        words.append(f"{type(value).__name__} {value!a}")


def _last(place: re.Match[str]) -> str:
    """What is meant in a module, without the module."""
    return place[0].rpartition(":")[2] if ":" in place[0] else "module"


def _imported(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Every name that is imported anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, (node.module or "", one.name)) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], (one.name, "")) for one in node.names)
