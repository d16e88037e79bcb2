"""How much each topic is talked about in each year, month or day, at whoever holds the documents. Nothing of it leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import PartyCorpus
from securetm.corpus.dates import all_periods, periods_of
from securetm.errors import BadSetting, NotFound
from securetm.federation.file_digests import RUN
from securetm.federation.folder import reopen
from securetm.federation.simulation.simulation import documents_of
from securetm.runs.finished import FinishedRun, LearnedModel


@dataclass(frozen=True, eq=False)
class TopicsByDate:
    """The mean share of every topic in the documents of every period. Documents without a known word count nowhere."""

    period: str  # year, month or day
    periods: tuple[str, ...]  # in order, such as 2026-11; those between without a document too
    documents: Array  # periods: how many documents there are, int64
    shares: Array  # periods x topics, rows sum to one; not a number where a period has no document

    def table(self) -> dict[str, Any]:
        """Returns it ready for JSON, with null where a period has no document."""
        rows = [None if not n else np.round(row, 6).tolist() for n, row in zip(self.documents, self.shares, strict=True)]
        return {"period": self.period, "periods": list(self.periods), "documents": self.documents.tolist(), "shares": rows}


def topics_by_date(learned: LearnedModel, corpora: Mapping[str, PartyCorpus], period: str = "month") -> TopicsByDate:
    """Returns the topics of these documents by date. `corpora` are named by whose they are, for the place of a wrong date."""
    shares, periods = [np.zeros((0, len(learned.components_)))], list[str]()
    for name, corpus in corpora.items():
        found = periods_of(corpus.dates, period, name)  # of all documents, so that the place counts all of them
        for places, known in corpus.project(learned.vocabulary).parts():
            kept = np.flatnonzero(known.lengths() > 0)
            shares.append(np.asarray(learned.model.infer(learned.state, known.select(kept))))
            periods += [found[row] for row in places[kept]]
    ordered = all_periods(periods, period)
    place_of = {one: place for place, one in enumerate(ordered)}
    rows = np.array([place_of[one] for one in periods], dtype=np.int64)
    sums = np.zeros((len(ordered), len(learned.components_)))
    np.add.at(sums, rows, np.concatenate(shares))
    counts = np.bincount(rows, minlength=len(ordered))
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts[:, None], out=means, where=counts[:, None] > 0)
    return TopicsByDate(period, tuple(ordered), counts, means)


def documents_in(run: FinishedRun, party: str | None = None) -> dict[str, PartyCorpus]:
    """Returns the documents that lie in the folder of a simulation, of every party or of one. No other run has any there."""
    if not (run.folder / RUN).is_file():
        raise BadSetting("", "--corpus", None, "only the folder of a simulation holds documents")
    folder = reopen(run.folder)
    if party is not None and party not in folder.members:
        raise NotFound("party", party, folder.members)
    names = [name for name in folder.members if party in (None, name)]
    if not all(folder.documents(name).is_file() for name in names):
        raise BadSetting("", "--corpus", None, "the folder of this run holds no documents")
    return {name: documents_of(folder, name) for name in names}
