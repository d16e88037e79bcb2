"""The federation that the faults befall: five small parties, and the plans of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.plans.schema import Plan

from ..federation.conftest import corpora, five, small_plan
from ..federation.private import public_words

__all__ = ["corpora", "five"]

MODELS: Mapping[str, Mapping[str, Any]] = {
    "lda": {"name": "lda", "n_topics": 3},
    "prodlda": {"name": "prodlda", "n_topics": 3, "hidden": 8, "batch": 34},
}


def plan_of(profile: str, model: str, rounds: int, folder: Path, **settings: Any) -> Plan:
    """A small plan; where a budget pays, its words are public and its noise is large enough for all rounds."""
    more: dict[str, Any] = {"training__rounds": rounds, **settings}
    if not profile.startswith(("open", "masked")):
        more |= {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(folder)}
    return small_plan(profile=profile, model=dict(MODELS[model]), **more)
