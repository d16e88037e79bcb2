"""A running sum that loses nothing to rounding, however many numbers are added (Kahan 1965), for compiled loops."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, inline="always")
def plus(whole: float, lost: float, more: float) -> tuple[float, float]:
    """The next sum, and what rounding added to it: a clip relies on lengths, however many words a document has."""
    wanted = more - lost
    found = whole + wanted
    return found, (found - whole) - wanted
