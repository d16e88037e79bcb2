"""Privacy losses on a coarser grid, for tests of runs: as sound, a few thousandths above, and ten times quicker. No test.

What the accounting says on its own grid is what tests/accounting looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from securetm.accounting import bounds, composition, losses

GRID = 1e-3


@contextmanager
def coarse() -> Iterator[None]:
    """Meanwhile; what was remembered of the one grid is forgotten before the other is used."""
    finest = losses.FINEST
    _use(GRID)
    try:
        yield
    finally:
        _use(finest)


def _use(grid: float) -> None:
    losses.FINEST = grid
    bounds.bounds_of.cache_clear()
    composition._affordable.cache_clear()
