"""A copy of the package's source that tests change, and hashes of evidence that are made of the copy. It holds no test."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.auditing import bindings
from securetm.auditing.bindings import SourceText

_READ = bindings.code_of.__wrapped__  # without its memory


def forget() -> None:
    """What was computed from files is computed again."""
    bindings._parts.cache_clear()
    bindings._of_source.cache_clear()


def one_statement_more(text: str) -> str:
    """The same file, whose functions and classes each have one statement more."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.body.append(ast.Pass())
    return ast.unparse(tree)


@dataclass(frozen=True)
class CopiedSource:
    """The copy. What a test changes of it is put back after the test."""

    folder: Path
    code_of: Callable[[Path], SourceText]  # parses each content once for all tests
    before: dict[Path, str] = field(default_factory=dict)
    added: list[Path] = field(default_factory=list)

    @classmethod
    def made(cls, place: Path) -> CopiedSource:
        """The whole source once more."""
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        known: dict[bytes, SourceText] = {}

        def code_of(path: Path) -> SourceText:
            content = path.read_bytes()
            if content not in known:
                known[content] = _READ(path)
            return known[content]

        return cls(Path(shutil.copytree(bindings._HOUSE, place / "securetm", ignore=ignored)), code_of)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hashes are made of the copy."""
        monkeypatch.setattr(bindings, "_HOUSE", self.folder)
        monkeypatch.setattr(bindings, "code_of", self.code_of)
        forget()

    def change(self, name: str, how: Callable[[str], str] = one_statement_more) -> None:
        """Makes another text of a file; by default every definition gets one statement more."""
        path = self.folder / name
        text = self.before.setdefault(path, path.read_text("utf-8"))
        path.write_text(how(text), "utf-8")
        forget()

    def move(self, old: str, new: str) -> None:
        """Moves a file, and everything that names it names its new place."""
        names = [f"securetm.{name.removesuffix('.py').replace('/', '.')}" for name in (old, new)]
        for path in self.folder.rglob("*.py"):
            if names[0] in (text := path.read_text("utf-8")):
                self.change(str(path.relative_to(self.folder)), lambda text: text.replace(*names))
        text = (self.folder / old).read_text("utf-8")
        self.before.setdefault(self.folder / old, text)
        (self.folder / old).unlink()
        self.write(new, text)

    def write(self, name: str, text: str) -> None:
        """Adds a file."""
        self.added.append(self.folder / name)
        (self.folder / name).write_text(text, "utf-8")
        forget()

    def restore(self) -> None:
        """Every file is as it was."""
        for path, text in self.before.items():
            path.write_text(text, "utf-8")
        for path in self.added:
            path.unlink()
        self.before.clear()
        self.added.clear()
