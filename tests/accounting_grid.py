"""The grid of privacy losses that tests use: coarser than a user's, as sound, and ten times quicker. It tests nothing itself.

A coarser grid rounds every loss further up, so that an epsilon is up to a hundredth larger. Where figures are what is tested,
the user's grid is used.
"""

from __future__ import annotations

from securetm.accounting import bounds, composition, losses

FINE, COARSE = losses.FINEST, 4e-3
EXACT = (
    "tests/accounting/test_truth.py",
    "tests/plans/test_oracle.py",
    "tests/reports/test_budget_page.py",
)  # tests of figures


def grid_of(nodeid: str) -> float:
    """The grid for that test."""
    return FINE if nodeid.startswith(EXACT) else COARSE


def use_grid(grid: float) -> None:
    """Uses that grid from now on in this process, and forgets what was computed on another one."""
    if grid != losses.FINEST:
        losses.FINEST = grid
        bounds.bounds_of.cache_clear()
        composition._affordable.cache_clear()
