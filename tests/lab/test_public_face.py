"""The lab uses securetm from outside: names without an underscore, of any module but the command line's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import lab

FILES = [path for path in Path(lab.__file__).parent.rglob("*.py") if "scripts" not in path.parts]  # peers' own processes


def private(module: ast.Module) -> Iterator[str]:
    """What is named that is not public: imported, or asked of any object but its own."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "securetm":
            names = f"{node.module}.{'.'.join(alias.name for alias in node.names)}"
            if "._" in names or names.startswith("securetm.cli."):
                yield names
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            yield from [] if ast.unparse(node.value) in ("self", "cls") else [ast.unparse(node)]


def test_nothing_private_is_used() -> None:
    assert {str(path): found for path in FILES if (found := list(private(ast.parse(path.read_text("utf-8")))))} == {}


def test_what_is_private_is_found() -> None:
    text = "from securetm.cli.main import main\nfrom securetm.models.lda import _draw\nmodel._begun()\nself._fine()"
    assert len(list(private(ast.parse(text)))) == 3
