"""What every suite may ask for. No test of its own."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from .kernel_cache import compile_once

# What is loaded stays until the end: looking through it again and again for cycles took a tenth of the suite's time.
gc.disable()

# Dozens of processes and both workers would else compile the whole package and all tests, each for itself.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the suite in the background lets it ignore Ctrl-C, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ("tests.calibrations", "tests.distribution", "tests.repeatable", "tests.skips")

# How long an example takes says how busy the machine is. The same examples come each time: whoever looks for new ones gives
# `--hypothesis-profile=search`.
settings.register_profile("same", deadline=None, derandomize=True, database=None, max_examples=40)
settings.register_profile("search", deadline=None)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """A process that only hands tests out to others compiles nothing."""
    if not config.getoption("numprocesses", None):
        compile_once()


def pytest_collection_finish() -> None:
    """From here on cycles are looked for, in what tests make; as often as Python does, it took a fifteenth of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _accounting_grid(request: pytest.FixtureRequest) -> None:
    """Privacy losses on a coarse grid, but where figures are tested."""
    from .accounting_grid import grid_of, use_grid

    use_grid(grid_of(request.node.nodeid))


@pytest.fixture(scope="module", autouse=True)
def _comparison(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs compare the shared model with each party's own only where a test reads it."""
    from .comparisons import compares, comparing

    with comparing(compares(request.node.nodeid)):
        yield


@pytest.fixture(autouse=True)
def _comparison_of_test(request: pytest.FixtureRequest) -> Iterator[None]:
    from .comparisons import compares, comparing

    with comparing(compares(request.node.nodeid)):
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of research corpora beside the checkout, which not everybody has."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the research corpora are not beside this checkout (../shared/data)")
    return folder
