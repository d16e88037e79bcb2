"""Lists every error class of the package. It imports the modules that define errors, and nothing that raises them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from securetm.errors.tree import SecuretmError

_PACKAGE = Path(__file__).resolve().parents[1]


def _below(kind: type[SecuretmError]) -> Iterator[type[SecuretmError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def error_classes() -> dict[str, type[SecuretmError]]:
    """Every error class that securetm defines, by name: those in `securetm/errors` and in every `*_errors.py`."""
    for path in sorted(_PACKAGE.rglob("*_errors.py")):
        import_module(".".join(("securetm", *path.relative_to(_PACKAGE).with_suffix("").parts)))
    ours = {kind.__name__: kind for kind in _below(SecuretmError) if kind.__module__.startswith("securetm.")}
    return dict(sorted(ours.items()))
