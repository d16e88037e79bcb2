"""How large a delta may be beside the number of units of all parties together: one place for roles, commands and pages.

Under a delta of 1 / N a mechanism that publishes one of N units whole keeps its promise. So that many is refused where
documents are at stake, and more than a tenth of it is told. N is the number in the whole federation, because the promise is
about what all parties release together; where nobody knows it, the least that is known of it counts.
"""

from __future__ import annotations

from securetm.wording import downward_figure, upward_figure

TENTH = 10


def is_too_large(delta: float, units: int) -> bool:
    """Whether a mechanism that publishes one of so many units whole would keep its promise under this delta."""
    return delta * units >= 1


def sentence_delta(delta: float, units: int | None, unit: str = "document") -> str | None:
    """The warning about a delta at or above 1 / N, or above 1 / (10 N); nothing if nobody counted the units."""
    if units is None or delta * units * TENTH <= 1:
        return None
    if not is_too_large(delta, units):
        return (
            f"delta = {upward_figure(delta)} is above 1 / (10 N) = {downward_figure(1 / (TENTH * units))} for N = {units:,} "
            f"{unit}s: with the probability delta the promise holds for nobody. Choose a delta of a tenth of 1 / N, or less."
        )
    published = f"all that a random {unit} has" if unit != "document" else "a random document of the corpus"
    return (
        f"delta = {upward_figure(delta)} is not below 1 / {unit}s = {downward_figure(1 / units)}: a mechanism that publishes "
        f"{published} would satisfy it. Choose a delta well below that."
    )
