"""How sentences write numbers and lists: plurals, lists with "and", budgets rounded to the safe side. It has no sentences."""

from __future__ import annotations

import math


def counted(number: float, one: str, several: str = "") -> str:
    """A number of things: `1 party`, `2 parties`, `0.5 epochs`."""
    written = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{written} {one if number == 1 else several or one + 's'}"


def colluding_parties(number: int) -> str:
    """So many colluding parties: `one colluding party`, `2 colluding parties`."""
    return "one colluding party" if number == 1 else f"{number} colluding parties"


def listed(parts: tuple[str, ...]) -> str:
    """Parts of a sentence as a list with commas and a last "and"."""
    return " and ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + f", and {parts[-1]}"


def upward(value: float, places: int = 3) -> str:
    """A budget as people read it: rounded, and never downwards."""
    if not math.isfinite(value):
        return "infinity"
    if 0 < value < 0.001:
        return "0.001"
    shift = 10.0 ** (places if value < 10 else max(places - 1, 0) if value < 100 else 0)
    return f"{math.ceil(value * shift - 1e-9) / shift:,.{places}f}".rstrip("0").rstrip(".")


def downward(value: float) -> str:
    """What is left of a budget: rounded, and never upwards."""
    return upward(math.floor(max(value, 0.0) * 1000) / 1000)
