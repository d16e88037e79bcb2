"""Finds the known name that is most similar to a mistyped one, by its letters alone."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6  # of all letters, from which on a name counts as mistyped
_LONGEST = 200


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The beginning of a hint with the most similar name; empty where no name is similar."""
    if len(name) > _LONGEST:
        return ""
    by_letters = {one.lower().replace("-", "_"): one for one in known}
    found = get_close_matches(name.lower().replace("-", "_"), by_letters, 1, _ALIKE)
    return f"did you mean {by_letters[found[0]]}? " if found else ""
