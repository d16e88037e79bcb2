"""What a report shows beside a figure: rebuilt examples and curves, as plain records. It imports no arithmetic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """Something that an attack rebuilt, beside the original."""

    original: str
    recovered: str
    exact: bool


@dataclass(frozen=True)
class Curve:
    """A line of a plot: true against false positives (`roc`), or shown against claimed epsilon (`epsilon`)."""

    kind: str
    label: str
    across: tuple[float, ...]
    up: tuple[float, ...]
