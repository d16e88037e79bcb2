"""Federations that experiments train: begun in a folder that is removed afterwards, over a public list of words."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from securetm.contracts import State, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.result import spent_by
from securetm.federation.simulation.simulation import train
from securetm.federation.transcript import Transcript
from securetm.plans.agreement import Agreement
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

_PUBLIC = "words of the experiment's corpus, which is public"


@dataclass(frozen=True)
class FederationForm:
    title: str
    profile: str
    model: Mapping[str, Any]
    rounds: int
    privacy: Mapping[str, float] = field(default_factory=dict)

    def tables(self, model: Mapping[str, Any], **training: Any) -> Mapping[str, Any]:
        """Its plan. `model` has the model's name and the settings that do not depend on the form."""
        training |= {"rounds": self.rounds}
        return {"profile": self.profile, "model": {**model, **self.model}, "training": training, "privacy": dict(self.privacy)}


def dealt_out(corpus: Corpus, parties: int) -> dict[str, Corpus]:
    return {f"party {n + 1}": part for n, part in enumerate(equal(corpus, parties, seed=0).values())}


@contextmanager
def begun(
    parties: Mapping[str, Corpus], words: Sequence[str], tables: Mapping[str, Any], *, recorded: bool = False
) -> Iterator[RunFolder]:
    """A run of these parties, ready to be trained. `words` is the agreed vocabulary or a list that securetm knows by name.

    `tables` is the rest of the plan.
    """
    with tempfile.TemporaryDirectory() as place:
        if isinstance(words, str):
            named: dict[str, Any] = {"vocabulary": {"source": "file", "file": words}}
        else:
            listed = Path(place) / "words.txt"
            listed.write_text("\n".join(words), "utf-8")
            named = {"vocabulary": {"source": "file", "file": str(listed)}, "origins": {"vocabulary": _PUBLIC}}
        plan = plan_from_tables({**tables, **named}, "the experiment")
        yield begin(Path(place) / "run", plan, parties, with_content=recorded)


@dataclass(frozen=True)
class FederatedRun:
    model: TopicModel
    state: State
    plan: Plan
    rounds: int
    spent: float | None  # epsilon, by the first party's ledger
    seconds: float  # of all roles one after the other, on this machine
    megabytes: float  # of all messages, up and down
    processor: float = 0.0  # seconds of processor time of all roles
    words: tuple[str, ...] = ()  # that were agreed on


def _as_agreed(agreement: Agreement) -> Agreement:
    return agreement


def federated(
    parties: Mapping[str, Corpus],
    words: Sequence[str],
    tables: Mapping[str, Any],
    changed: Callable[[Agreement], Agreement] = _as_agreed,
) -> FederatedRun:
    """Trains one federation with new ledgers. `changed` may put a model that has no name into the agreement."""
    with begun(parties, words, tables) as run:
        run = replace(run, agreement=changed(run.agreement))
        start, processor = time.perf_counter(), time.process_time()
        trained = train(run, Unwatched())
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        transcript = Transcript(run.path / "transcript")
        sent = sum(transcript.traffic())
        transcript.close()
        agreement, spent = run.agreement, spent_by(run, run.members[0])["epsilon"]
        learned = (agreement.model, trained.state, agreement.plan, trained.rounds)
        return FederatedRun(*learned, spent, seconds, sent / 1e6, processor, agreement.words or ())
