"""Whether the runs of tests train each party alone too, for comparison. It tests nothing itself.

A run compares by default, which takes as long as its training again. Tests that read nothing of it train without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from securetm.federation.simulation import simulation

_IN = "tests/federation/test_"
_READ_IT = ("changed_files", "results", "resume")
WHOLE = ("tests/lab/", *(f"{_IN}{name}.py" for name in _READ_IT))
SOME = (
    f"{_IN}model_runs.py::test_a_federation_learns_what",
    f"{_IN}model_runs.py::test_a_run_finds_what_parties_share",
    f"{_IN}refused_plans.py::test_a_party_trains_alone",
)  # the other tests of their files read nothing of it
_compare = simulation.compare


def compares(nodeid: str) -> bool:
    """Whether that test reads what a run compares."""
    return nodeid.startswith(WHOLE + SOME)


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
