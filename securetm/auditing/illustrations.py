"""What a report shows beside a figure: rebuilt examples and curves, as plain records. It imports no arithmetic."""

from __future__ import annotations

from msgspec import Struct


class Example(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that an attack rebuilt, beside the original."""

    original: str
    recovered: str
    exact: bool


HIDDEN = "□"  # stands for a word of the original that did not leak


def leaked(example: Example) -> Example | None:
    """The example without the words that did not leak; None if none did. An exact one is shown as it is."""
    if example.exact:
        return example
    named, colon, listed = example.original.rpartition(": ")
    found = set(example.recovered.rpartition(": ")[2].split(", "))
    words = [word if word in found else HIDDEN for word in listed.split(", ")]
    if all(word == HIDDEN for word in words):
        return None
    return Example(f"{named}{colon}{', '.join(words)}", example.recovered, exact=False)


class Curve(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a plot: true against false positives (`roc`), or shown against claimed epsilon (`epsilon`)."""

    kind: str
    label: str
    across: tuple[float, ...]
    up: tuple[float, ...]
