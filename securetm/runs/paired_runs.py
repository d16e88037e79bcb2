"""Whether one run predicts the same held-out documents better than another one, or is only luckier with these documents.

Only the folder of a simulation holds documents, so only simulations are compared so. It trains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.federation.folder import RunFolder, reopen
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.local_training import held_out_likelihood
from securetm.federation.simulation.simulation import documents_of
from securetm.quality.significance import Difference, paired_difference
from securetm.runs.finished import FinishedRun

MOST_DOCUMENTS = 5_000  # held-out ones of all parties, drawn alike for every run


@dataclass(frozen=True, eq=False)
class PredictedDocuments:
    """The held-out documents of a run, and the log-likelihood of the unseen half of each."""

    vocabulary: tuple[str, ...]
    keys: Array
    found: Array
    words: Array


@dataclass(frozen=True)
class PairedRuns:
    """The second run's log-likelihood per word minus the first one's, over the same documents; or why there is none."""

    runs: tuple[str, str]
    documents: int = 0
    difference: Difference | None = None
    needs: str = ""

    def table(self) -> dict[str, Any]:
        """For JSON."""
        found = self.difference or Difference(*[float("nan")] * 4)
        apart = {"difference": found.value, "low": found.low, "high": found.high, "chance": found.chance}
        sure = None if self.difference is None else found.sure
        return {"runs": list(self.runs), "documents": self.documents, **apart, "sure": sure, "needs": self.needs or None}


def paired_runs(first: Path, others: Sequence[Path]) -> list[PairedRuns]:
    """The first run with each of the others."""
    mine = _held_out(first)
    return [_paired((first.name, other.name), mine, _held_out(other)) for other in others]


def _paired(names: tuple[str, str], mine: PredictedDocuments | str, other: PredictedDocuments | str) -> PairedRuns:
    if isinstance(mine, str) or isinstance(other, str):
        return PairedRuns(names, needs=mine if isinstance(mine, str) else str(other))
    if mine.vocabulary != other.vocabulary:
        return PairedRuns(names, needs="the same words: likelihoods over others cannot be compared")
    if not np.array_equal(mine.keys, other.keys):
        return PairedRuns(names, needs="the same held-out documents: the same corpus, seed and training.held_out")
    return PairedRuns(names, len(mine.keys), paired_difference(other.found, mine.found, mine.words))


def _held_out(path: Path) -> PredictedDocuments | str:
    """The likelihood of a run's held-out documents; or what is missing."""
    folder = reopen(path)
    if not all(folder.documents(name).is_file() for name in folder.members):
        return "documents: only the folder of a simulation holds any"
    run = FinishedRun.open(path)
    parts = [_of_party(folder, run, name) for name in folder.members]
    keys, found, words = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PredictedDocuments(run.vocabulary, keys, found, words)


def _of_party(folder: RunFolder, run: FinishedRun, name: str) -> tuple[Array, Array, Array]:
    documents = PartyDocuments(documents_of(folder, name))
    documents.adopt(run.vocabulary, folder.agreement)
    assert documents.held_out is not None
    most = max(1, MOST_DOCUMENTS // len(folder.members))
    if len(documents.held_out) > most:
        drawn = np.sort(np.random.default_rng(0).choice(len(documents.held_out), most, replace=False))
        documents.held_out = documents.held_out.select(drawn)
    found, words = held_out_likelihood(run.model, run.state, documents, folder.agreement.plan.seed)
    return np.asarray(documents.held_out.keys), found, words
