"""What the committed frontier of private models found under a profile, for commands and pages that recommend by it.

It trains nothing. A profile that was not tried has no figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

_CORPUS, _TOPICS, _JUDGING = "20 Newsgroups", 20, 0.1
_MODEL, _CONTROL, _NO_NOISE = "lda-vi, public start", "public start, no document", "masked"
_SHOWN = (8.0, 3.0, 1.0)  # epsilons


def frontier_says(profile: str) -> str:
    """What quality to expect under this profile, in one sentence; nothing where it was not tried."""
    found = _figures()
    at = [(epsilon, found[profile, epsilon]) for epsilon in _SHOWN if (profile, epsilon) in found]
    if not at:
        return ""
    each = ", ".join(f"{value:.2f} at epsilon {epsilon:g}" for epsilon, value in at)
    return (
        f"lda-vi from a public start; on 18,820 documents of {_CORPUS} a classifier on its {_TOPICS} topics has F1 {each}, "
        f"{found[_NO_NOISE, None]:.2f} without noise, and {found[_CONTROL, None]:.2f} on topics that no document made "
        "(securetm reproduce private-frontier)"
    )


def committed(name: str) -> dict[str, Any]:
    """The committed result of a reproduction."""
    text = resources.files("securetm.experiments").joinpath("results", f"reproduce-{name}.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _figures() -> Mapping[tuple[str, float | None], float]:
    """F1 by profile and epsilon; that of the control by its name."""
    rows = [row for row in committed("private-frontier")["rows"] if _judged(row)]
    told = [row for row in rows if row["model"] in (_MODEL, _CONTROL)]
    return {(_CONTROL if row["model"] == _CONTROL else row["profile"], row["epsilon"]): row["f1"] for row in told}


def _judged(row: Mapping[str, Any]) -> bool:
    return (row["corpus"], row["topics"], row["judging"]) == (_CORPUS, _TOPICS, _JUDGING)
