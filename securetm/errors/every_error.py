"""Lists every error class of the package, wherever it stands: beside what raises it, or in a file of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from securetm.errors.tree import SecuretmError

_PACKAGE = Path(__file__).resolve().parents[1]
_CLASS = re.compile(r"^class (\w+)\((\w+)", re.MULTILINE)  # a class, and the first of its bases


def _below(kind: type[SecuretmError]) -> Iterator[type[SecuretmError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


@cache
def _modules_of_errors() -> dict[str, str]:
    """By the name of each class below the root of all errors, the module whose text defines it. None of them is imported."""
    classes = {path: _CLASS.findall(path.read_text("utf-8")) for path in sorted(_PACKAGE.rglob("*.py"))}
    known, before = {SecuretmError.__name__}, 0
    while len(known) > before:
        before = len(known)
        known |= {name for defined in classes.values() for name, base in defined if base in known}
    module = {path: ".".join(("securetm", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in classes}
    return {name: module[path] for path, defined in classes.items() for name, base in defined if base in known}


def error_class(name: str) -> type[SecuretmError] | None:
    """The class of that name, as it came over the wire; None where securetm defines none. It imports one module."""
    module = _modules_of_errors().get(name)
    return getattr(import_module(module), name) if module else None


def error_classes() -> dict[str, type[SecuretmError]]:
    """Every error class that securetm defines, by name. A module whose extra is not installed is left out."""
    for module in dict.fromkeys(_modules_of_errors().values()):
        with suppress(ImportError):
            import_module(module)
    ours = {kind.__name__: kind for kind in _below(SecuretmError) if kind.__module__.startswith("securetm.")}
    return dict(sorted(ours.items()))
