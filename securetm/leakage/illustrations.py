"""What a report shows beside a figure: rebuilt examples and curves, as plain records. It imports no arithmetic."""

from __future__ import annotations

from msgspec import Struct


class Example(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that an attack rebuilt, beside the original."""

    original: str
    recovered: str
    exact: bool


class Curve(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a plot: true against false positives (`roc`), or shown against claimed epsilon (`epsilon`)."""

    kind: str
    label: str
    across: tuple[float, ...]
    up: tuple[float, ...]
