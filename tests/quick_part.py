"""Which values of a test run with every change; the others run in the slow suite. It tests nothing itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(values: Iterable[Any], *few: Any) -> list[Any]:
    """All values of a parametrised test, of which a few are tried with every change. Several parameters are tuples."""
    return [_param(value, few) for value in values]


def _param(value: Any, few: Collection[Any]) -> Any:
    given = value if isinstance(value, tuple) else (value,)
    return pytest.param(*given, marks=() if value in few else pytest.mark.slow)
