"""The digest of a source file's syntax tree, without comments, docstrings and layout. This module runs and imports no file.

The digest is the same under every supported version of Python: empty fields are left out, since later versions add some.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_WITHOUT_MEANING = frozenset({"ctx", "kind", "type_comment"})  # these follow from the place of a node, or have no effect
_PACKAGE = "securetm."
_DOTTED = re.compile(r"\bsecuretm\.\w[\w.]*")


@dataclass(frozen=True)
class SourceText:
    """The digest of a file's syntax tree, and the dotted names below `securetm` that it imports or holds as text."""

    digest: bytes
    mentions: frozenset[str]


@cache
def code_of(path: Path) -> SourceText:
    """Reads a file once. A process that changes the file calls `code_of.cache_clear()`."""
    tree = ast.parse(path.read_text("utf-8"), filename=path.name)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    words: list[str] = []
    _write(tree, words)
    return SourceText(hashlib.sha256("\n".join(words).encode()).digest(), frozenset(_mentions(tree)))


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
            _write(one, words)
        words.append("]")
    else:
        words.append(f"{type(value).__name__} {value!a}")


def _mentions(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(_DOTTED.findall(node.value))
    return {name.removeprefix(_PACKAGE) for name in found if name.startswith(_PACKAGE)}
