"""The package's source as syntax trees, parsed once for all tests of a process that read it. It tests nothing itself."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "securetm"
GENERATED = {"wire_pb2.py", "network_pb2.py"}


@cache
def files() -> tuple[Path, ...]:
    """All files of the package that people write."""
    return tuple(path for path in sorted(PACKAGE.rglob("*.py")) if path.name not in GENERATED)


@cache
def source(path: Path) -> bytes:
    """What a file holds."""
    return path.read_bytes()


@cache
def tree(path: Path) -> ast.Module:
    """A file as a syntax tree."""
    return ast.parse(source(path))
