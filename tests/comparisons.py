"""Whether the runs of tests train each party alone too, for comparison. It tests nothing itself.

A run compares by default, which takes as long as its training again. Tests that read nothing of it train without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from securetm.federation import simulation

COMPARED: tuple[str, ...] = ("tests/federation/test_useful.py",)  # tests that read what a run compares
_compare = simulation.compare


def compares(nodeid: str) -> bool:
    """Whether that test reads what a run compares."""
    return nodeid.startswith(COMPARED)


@contextmanager
def comparing(wanted: bool) -> Iterator[None]:
    """Runs train each party alone for comparison only where that is wanted."""
    before = simulation.compare
    simulation.compare = _compare if wanted else _shared_alone
    yield
    simulation.compare = before


def _shared_alone(folder: Any, trained: Any, make: Callable[..., Any], stages: Any, alone: bool = True) -> Any:
    """Judges the shared model, as `--no-comparison` does."""
    return _compare(folder, trained, make, stages, alone=False)
