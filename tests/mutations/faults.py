"""The list of faults: where each is made, in which text, and which files of tests are to catch it.

A place is a name (`clipped`, `Ledger.charge`), wherever in the package it stands. A snippet is compared as syntax, so that
comments, line breaks and moves do not matter. A fault that fits nowhere, or in two places, is a mistake of the list.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..source_trees import ROOT, files, source, tree

LIST, OUTCOME = Path(__file__).with_name("mutations.toml"), Path(__file__).with_name("outcome.json")
SURVIVED = "survived"


@dataclass(frozen=True)
class Fault:
    """One line of the list."""

    id: str
    place: str
    old: str
    new: str
    breaks: str  # which promise
    tests: tuple[str, ...]  # files of tests, by their names alone

    def files(self) -> list[str]:
        """The files of tests, wherever they are now."""
        return [path for name in self.tests for path in self.files_called(name)]

    @staticmethod
    @cache
    def files_called(name: str) -> tuple[str, ...]:
        """The files of tests of that name."""
        return tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob(f"{name}.py")))

    def made(self) -> tuple[Path, str]:
        """The file that it changes, relative to the tree, and its text with the fault."""
        found = [(path, one) for path, definition in _definitions(self.place) for one in self._places(definition)]
        if len(found) != 1:
            raise ValueError(f"{self.id}: {self.old!r} is {len(found)} times in {self.place}, and should be there once")
        path, nodes = found[0]
        return path.relative_to(ROOT), self._replaced(source(path), nodes)

    def _places(self, definition: ast.AST) -> Iterator[Sequence[ast.AST]]:
        """Where the snippet is in that definition: one expression, or neighbouring statements."""
        wanted = ast.parse(self.old).body
        if len(wanted) == 1 and isinstance(wanted[0], ast.Expr) and isinstance(ast.parse(self.new).body[0], ast.Expr):
            sought = _syntax(wanted[0].value)
            alike = (node for node in ast.walk(definition) if type(node) is type(wanted[0].value))
            yield from ((node,) for node in alike if isinstance(node, ast.expr) and _syntax(node) == sought)
            return
        lines = [_syntax(statement) for statement in wanted]
        for node in ast.walk(definition):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                for at in range(len(block) - len(lines) + 1) if isinstance(block, list) else ():
                    if [_syntax(statement) for statement in block[at : at + len(lines)]] == lines:
                        yield block[at : at + len(lines)]

    def _replaced(self, source: bytes, nodes: Sequence[ast.AST]) -> str:
        lines = source.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        first, last = nodes[0], nodes[-1]
        begin, end = starts[first.lineno - 1] + first.col_offset, starts[last.end_lineno - 1] + last.end_col_offset
        new = f"({self.new})" if isinstance(first, ast.expr) else textwrap.indent(self.new, " " * first.col_offset).lstrip()
        return (source[:begin] + new.encode() + source[end:]).decode()


def all_faults() -> list[Fault]:
    """The whole list. What an area says of tests holds for each of its faults that names none."""
    areas = tomllib.loads(LIST.read_text("utf-8"))
    return [
        Fault(one["id"], one["in"], one["old"], one["new"], one["breaks"], tuple(one.get("tests", area["tests"])))
        for area in areas.values()
        for one in area["mutation"]
    ]


def _definitions(place: str) -> Iterator[tuple[Path, ast.AST]]:
    """Every function of that name in the package; of a method, the name of its class stands before it."""
    owner, _, name = place.rpartition(".")
    for path in files():
        if f"def {name}(".encode() in source(path):
            whole = tree(path).body
            holders = [one.body for one in whole if isinstance(one, ast.ClassDef) and one.name == owner] if owner else [whole]
            functions = (one for held in holders for one in held if isinstance(one, ast.FunctionDef))
            yield from ((path, one) for one in functions if one.name == name)


def _syntax(node: ast.AST) -> str:
    """What a node says, whether it is read or written."""
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")
