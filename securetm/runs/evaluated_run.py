"""What a finished run brings to its evaluation: its topics, the documents in its folder, and which of these were held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.folder import reopen
from securetm.federation.party.documents import PartyDocuments
from securetm.quality.judged_topics import JudgedTopics
from securetm.runs.finished import FinishedRun
from securetm.runs.topics_by_date import documents_in

NO_DOCUMENTS = "needs documents, and the folder of this run holds none: --corpus FILE"


def judged_run(run: FinishedRun) -> JudgedTopics:
    """The topics of the run's model."""
    return JudgedTopics.of_model(run.name, run.model, run.state, run.vocabulary)


def documents_of_run(run: FinishedRun) -> Corpus | None:
    """The documents of all parties of a simulation, over all their words; None where the folder holds none."""
    try:
        held = documents_in(run)
    except BadSetting:  # no simulation, or its documents were taken away
        return None
    found: dict[str, Corpus] = {name: corpus.gathered() for name, corpus in held.items() if len(corpus)}
    columns = ("labels", "embeddings")  # the others play no part, and may be there at some parties only
    kept = [name for name in columns if all(getattr(corpus, name) is not None for corpus in found.values())]
    bare = dict.fromkeys(("labels", "embeddings", "parties", "dates", "texts"))
    chosen = [replace(one, **{**bare, **{name: getattr(one, name) for name in kept}}) for one in found.values()]
    return Corpus.concat(chosen, name=run.name) if chosen else None


def held_out_keys(run: FinishedRun) -> tuple[Array, Array]:
    """The keys of the documents that the run trained on, and of those that it held out, as its parties divide them."""
    agreement, parts = reopen(run.folder).agreement, []
    for corpus in documents_in(run).values():
        documents = PartyDocuments(corpus)
        documents.adopt(run.vocabulary, agreement)
        parts.append(documents)
    return tuple(np.concatenate([_keys(getattr(one, name)) for one in parts]) for name in ("train", "held_out"))  # type: ignore[return-value]


def _keys(documents: Any) -> Array:
    return np.asarray(documents.keys, dtype=np.uint64)


def held_out_rows(documents: Corpus, runs: list[FinishedRun]) -> Array:
    """The rows that the first run held out, and that no other run whose documents are known trained on."""
    kept = np.isin(documents.keys, held_out_keys(runs[0])[1])
    for other in runs[1:]:
        if documents_of_run(other) is not None:
            kept &= ~np.isin(documents.keys, held_out_keys(other)[0])
    return np.flatnonzero(kept)
