"""Replays a party's draws from the same public noise, to find the tables behind its answer, which no role stores.

It is for the judge alone. It uses only what the party knew: its documents, the noise that it kept, and its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any, cast

import numpy as np

from securetm.auditing.attack import TopicTables
from securetm.contracts import Array, RoundContext, State
from securetm.entropy import OperatingSystem
from securetm.federation.folder import RunFolder
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.party import Party
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import make_party
from securetm.models.gibbs.draws import CountTable, SampledDocuments
from securetm.models.matching.matched import Matched
from securetm.plans.profiles import cohort_of
from securetm.route import Route


def replayed_tables(
    folder: RunFolder, vocabulary: tuple[str, ...], states: Mapping[tuple[int, str], State], serial: int, name: str
) -> TopicTables:
    """The table that this party counted in this round, and the table of the words before noise."""
    model, state = cast(Matched, folder.agreement.model), states[serial, name]
    with closing(make_party(folder, name)) as party:
        known = PartyDocuments(party.corpus)
        known.adopt(vocabulary, folder.agreement)
        documents = known.for_question(TRAIN)
        noised = _behind_noise(party, documents, model.query(state))
    start = model.table(state)
    held = _RecordedDocuments(model.read(noised, start.words))
    counted = model.trained(start, cast(SampledDocuments, held), held.names(noised.keys))
    if noised.perturbed is None:
        return TopicTables(counted, counted)
    real = np.zeros(counted.shape)
    words = _words(documents)
    np.add.at(real, (_by_word(held.topics.astype(np.int64), documents, len(words)), words), 1.0)
    return TopicTables(counted, real)


def _behind_noise(party: Party, documents: Any, query: Any) -> Any:
    """The documents with the noise that the party drew once and kept."""
    cohort = cohort_of(party.agreement.profile, party.members)
    context = RoundContext(cohort, OperatingSystem(), party.store, party.drawn)
    return Route.through(query.terms, party.agreement.profile.mechanisms, cohort).on_documents(documents, context)


def _words(documents: Any) -> Array:
    """Which word each slot holds, in the order of the slots."""
    if documents.tokens is not None:
        return np.asarray(documents.tokens, dtype=np.int64)
    return np.repeat(documents.counts.indices, documents.counts.data).astype(np.int64)


def _by_word(topics: Array, documents: Any, words: int) -> Array:
    """Each word's topic: its own, or that of its sentence if whole sentences are drawn."""
    if len(topics) == words:
        return topics
    return np.repeat(topics, np.diff(documents.sentence_ends, prepend=0))


class _RecordedDocuments:
    """Documents as a model draws from them. They keep the topics that were counted last."""

    def __init__(self, held: SampledDocuments) -> None:
        self._held = held
        self.topics: Array = np.zeros(0, dtype=np.uint16)

    def __len__(self) -> int:
        return len(self._held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)

    def counted(self, topics: Array, table: CountTable) -> Array:
        """Counts as the documents do, and keeps the topics."""
        self.topics = topics
        return self._held.counted(topics, table)
