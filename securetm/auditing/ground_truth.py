"""Reads the documents of the parties from their folders, for the judge. No attack may import this module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.adversary_view import ColludingParty
from securetm.auditing.attack import Canaries, GroundTruth
from securetm.auditing.canaries import record_of
from securetm.auditing.demonstration import claimed_by
from securetm.auditing.networked import worked_in
from securetm.auditing.reading import RoundQuestion
from securetm.auditing.recorded import public_facts, states_of, vocabulary_of
from securetm.auditing.replay import replayed_tables
from securetm.contracts import Array, Sampling
from securetm.corpus.corpus import Corpus, PartyCorpus
from securetm.federation.folder import RunFolder
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.store import PartyStore
from securetm.mechanisms.batch_draws import batch_rows


def ground_truth_of(folder: RunFolder, rounds: Collection[RoundQuestion]) -> GroundTruth:
    """The documents of every party, and which of them took part in these rounds."""
    vocabulary, profile = vocabulary_of(folder), folder.agreement.profile
    sides = {name: _adopted(folder, name, vocabulary) for name in folder.members}
    trained = {name: side.for_question(TRAIN) for name, side in sides.items()}
    others = {name: side.for_question(HELD_OUT) for name, side in sides.items()}
    training = [asked for asked in rounds if asked.question == TRAIN]
    in_batches = any(mechanism.sampling is Sampling.PUBLIC for mechanism in profile.mechanisms)
    states = states_of(folder, {asked.serial for asked in rounds})
    drawn = {
        (asked.serial, name): _drawn(documents, asked, folder.agreement.plan.seed)
        for asked in training
        if in_batches or not asked.terms.batch
        for name, documents in trained.items()
    }
    return GroundTruth(
        vocabulary,
        held={name: documents.counts for name, documents in trained.items()},
        batches={(serial, name): trained[name].counts[rows] for (serial, name), rows in drawn.items()},
        drawn=drawn,
        embeddings=_embeddings(trained),
        other_embeddings=_embeddings(others),
        tables=lambda serial, name: replayed_tables(folder, vocabulary, states, serial, name),
        others={name: documents.counts for name, documents in others.items()},
        reachable=1.0 if in_batches else min((asked.terms.sampling for asked in training), default=1.0),
        public=public_facts(folder),
        canaries=_canaries(folder, vocabulary, trained),
        claimed=claimed_by(folder),
        worked={
            (asked.serial, name): words
            for name, by_number in worked_in(folder.path).items()
            for asked in training
            if (words := by_number.get(asked.number)) is not None
        },
        every_word=lambda: _every_word(folder),
        sentences={name: found for name, documents in trained.items() if (found := _sentences(documents)) is not None},
    )


def _every_word(folder: RunFolder) -> Mapping[str, int]:
    """In how many documents of all parties each word is, whatever was agreed on."""
    found = Counter[str]()
    for name in folder.members:
        corpus = Corpus.load(folder.party(name) / "corpus.npz").gathered()
        found.update(dict(zip(corpus.vocabulary, corpus.document_frequencies().tolist(), strict=True)))
    return found


def _sentences(documents: PartyCorpus) -> Any:
    """The counts of each sentence, in order; None if the words have no order."""
    if documents.tokens is None or documents.sentence_ends is None:
        return None
    ends = np.concatenate([[0], documents.sentence_ends])
    shape = (len(documents.sentence_ends), len(documents.vocabulary))
    counts = sparse.csr_array((np.ones(len(documents.tokens), dtype=np.int64), documents.tokens, ends), shape=shape)
    counts.sum_duplicates()
    return counts


def _canaries(folder: RunFolder, vocabulary: tuple[str, ...], trained: Mapping[str, Any]) -> Canaries | None:
    """The canaries, and the parties' other training documents, which an attacker may know."""
    if (found := record_of(folder.path, vocabulary)) is None:
        return None
    made = found.documents.keys
    return replace(found, others={name: own.select(~np.isin(own.keys, made)) for name, own in trained.items()})


def colluding_parties_of(folder: RunFolder, helpers: int) -> tuple[ColludingParty, ...]:
    """The last parties of the run with all that they hold."""
    vocabulary, names = vocabulary_of(folder), folder.members[len(folder.members) - helpers :]
    return tuple(ColludingParty(n, _adopted(folder, n, vocabulary).for_question(TRAIN), _secrets(folder, n)) for n in names)


def _secrets(folder: RunFolder, name: str) -> Mapping[str, bytes]:
    """Keys, prekeys and all else that this party keeps in its store."""
    store = PartyStore(folder.party(name))
    found = {str(key): store.get(str(key)) or b"" for (key,) in store.rows("SELECT key FROM store ORDER BY key")}
    store.close()
    return found


def _adopted(folder: RunFolder, name: str, vocabulary: tuple[str, ...]) -> PartyDocuments:
    documents = PartyDocuments(Corpus.load(folder.party(name) / "corpus.npz").gathered())
    documents.adopt(vocabulary, folder.agreement)
    return documents


def _drawn(documents: PartyCorpus, asked: RoundQuestion, seed: int) -> Array:
    """The places of the documents that took part. Their keys and public numbers determine those of a batch."""
    if not asked.terms.batch or len(documents) == 0:
        return np.arange(len(documents))
    return np.asarray(batch_rows(documents.keys, asked.terms.batch, asked.number, seed))


def _embeddings(documents: Mapping[str, PartyCorpus]) -> dict[str, Array]:
    return {name: own.embeddings for name, own in documents.items() if own.embeddings is not None}
