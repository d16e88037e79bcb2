"""Federations that experiments train: begun in a folder that is removed afterwards, over a public list of words."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.plan_reading import plan_from_tables


@dataclass(frozen=True)
class FederationForm:
    """One way to federate: the profile, the model's settings, and the number of rounds."""

    title: str
    profile: str
    model: Mapping[str, Any]
    rounds: int
    privacy: Mapping[str, float] = field(default_factory=dict)


@contextmanager
def begun(parties: Mapping[str, Corpus], words: Sequence[str], tables: Mapping[str, Any]) -> Iterator[RunFolder]:
    """A run of these parties, ready to be trained. `words` is the agreed vocabulary, `tables` the rest of the plan."""
    with tempfile.TemporaryDirectory() as place:
        listed = Path(place) / "words.txt"
        listed.write_text("\n".join(words), "utf-8")
        plan = plan_from_tables({**tables, "vocabulary": {"source": "file", "file": str(listed)}}, "the experiment")
        yield begin(Path(place) / "run", plan, parties)


@contextmanager
def begun_in_form(
    form: FederationForm, parties: Mapping[str, Corpus], words: Sequence[str], model: Mapping[str, Any], **training: Any
) -> Iterator[RunFolder]:
    """A run in that form. `model` has the model's name and the settings that do not depend on the form."""
    tables = {
        "profile": form.profile,
        "model": {**model, **form.model},
        "training": {"rounds": form.rounds, **training},
        "privacy": dict(form.privacy),
    }
    with begun(parties, words, tables) as run:
        yield run
