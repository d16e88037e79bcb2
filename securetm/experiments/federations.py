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

    def tables(self, model: Mapping[str, Any], **training: Any) -> Mapping[str, Any]:
        """Its plan. `model` has the model's name and the settings that do not depend on the form."""
        training |= {"rounds": self.rounds}
        return {"profile": self.profile, "model": {**model, **self.model}, "training": training, "privacy": dict(self.privacy)}


@contextmanager
def begun(parties: Mapping[str, Corpus], words: Sequence[str], tables: Mapping[str, Any]) -> Iterator[RunFolder]:
    """A run of these parties, ready to be trained. `words` is the agreed vocabulary, `tables` the rest of the plan."""
    with tempfile.TemporaryDirectory() as place:
        listed = Path(place) / "words.txt"
        listed.write_text("\n".join(words), "utf-8")
        plan = plan_from_tables({**tables, "vocabulary": {"source": "file", "file": str(listed)}}, "the experiment")
        yield begin(Path(place) / "run", plan, parties)
