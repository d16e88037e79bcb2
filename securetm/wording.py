"""How sentences write numbers and lists: plurals, lists with "and", budgets rounded to the safe side. It has no sentences."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext


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


# ---- bounds --------------------------------------------------------------------------------------------------------
#
# Whoever prints an "at most" uses a function whose name begins with `upward`, whoever prints an "at least" one that begins
# with `downward`: what people read is then implied by what was computed.

_ARITHMETIC = 1e-12  # relative: 0.1 + 0.2 is 0.3, not more; what a floating-point sum adds by itself is not a bound's
_SPACE = "\N{NO-BREAK SPACE}"


def upward(value: float) -> str:
    """A budget as people read it, never below the value: three decimals below 10, two below 100, none above."""
    return _budget(value, ROUND_CEILING)


def downward(value: float) -> str:
    """What is left of a budget, or what is spent at least, as people read it: never above the value, and never below 0."""
    return _budget(max(value, 0.0), ROUND_FLOOR)


def upward_figure(value: float, digits: int = 3) -> str:
    """A bound of any size, never below the value, with so many digits: `1.35e-05`."""
    return _figure(value, digits, ROUND_CEILING)


def downward_figure(value: float, digits: int = 3) -> str:
    """A bound of any size, never above the value, with so many digits."""
    return _figure(value, digits, ROUND_FLOOR)


def downward_whole(value: float) -> str:
    """A whole number that is not above the value: `one chance in 100,000`."""
    return f"{_rounded(value, 0, ROUND_FLOOR):,f}"


def upward_share(share: float, sign: str = f"{_SPACE}%") -> str:
    """A share in per cent, never below it. Only 1 is 100 %: as many decimals as it takes to tell it from that."""
    return _share(share, ROUND_CEILING) + sign


def downward_share(share: float) -> str:
    """A share in per cent, never above it. Only 0 is 0 %: two digits of a small one."""
    return f"{_share(share, ROUND_FLOOR)}{_SPACE}%"


def _budget(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return "infinity" if value > 0 else "no bound"
    places = 3 if value < 10 else 2 if value < 100 else 0
    return _without_zeros(f"{_rounded(value, -places, rounding) + 0:,f}")  # and not -0


def _figure(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "no bound"
    if value == 0:
        return "0"
    return f"{float(_rounded(value, _first_digit(value) + 1 - digits, rounding)):.{digits}g}"


def _share(share: float, rounding: str) -> str:
    percent = 100 * share
    finest = -1 if not 0 < percent < 1 else max(_first_digit(percent) - 1, -_MOST_DECIMALS)
    rounded = _rounded(percent, finest, rounding)
    while share < 1 and rounded >= _WHOLE and finest > -_MOST_DECIMALS:
        finest -= 1
        rounded = _rounded(percent, finest, rounding)
    return _without_zeros(f"{rounded:f}")


_WHOLE, _MOST_DECIMALS = 100, 6


def _first_digit(value: float) -> int:
    """The power of ten of a number's first digit."""
    return Decimal(value).adjusted()


def _rounded(value: float, power: int, rounding: str) -> Decimal:
    """The next multiple of a power of ten in one direction; the nearest where arithmetic alone may have missed it."""
    exact, step = Decimal(value), Decimal(1).scaleb(power)
    with localcontext(prec=400):  # a float has at most 309 digits before its point
        nearest = exact.quantize(step, ROUND_HALF_EVEN)
        if abs(nearest - exact) <= abs(exact) * Decimal(_ARITHMETIC):
            return nearest
        return exact.quantize(step, rounding)


def _without_zeros(written: str) -> str:
    """A number without zeros at the end of its decimals."""
    return written.rstrip("0").rstrip(".") if "." in written else written
