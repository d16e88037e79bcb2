"""The documents of the parties, from their folders, for the judge. No attack may import this module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from securetm.answers.route import Route
from securetm.auditing.attack import Canaries, GroundTruth, TopicTables
from securetm.auditing.recorded import claimed_by, public_facts, states_of, vocabulary_of
from securetm.auditing.roles import worked_in
from securetm.auditing.views import ColludingParty, RoundQuestion
from securetm.contracts import Array, RoundContext, Sampling, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.folder import RunFolder
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.simulation.simulation import make_party
from securetm.mechanisms.sampling import batch_rows
from securetm.models.lda.counting import CountTable, SampledDocuments
from securetm.models.lda.matched import Matched
from securetm.plans.profiles import cohort_of

# ---- canaries -------------------------------------------------------------------------------------------------------
# They are made of words that the parties use. The coins come from the operating system, so no attack can compute them from the
# plan's seed. They are stored beside the run, for the judge alone. No attack reads them.

LENGTH = 30  # different words of one canary: as many as a bounded row of counts may hold
RECORD = "canaries.npz"  # beside the run's transcript, in no role's own folder
_OFTEN = 5  # documents that a word must be in: the default of plans
_IN, _OUT = "in", "out"


def with_canaries(
    documents: Mapping[str, Corpus],
    each: int,
    seed: int,
    words: Sequence[str] | None = None,
    *,
    different: int = LENGTH,
) -> tuple[Mapping[str, Corpus], Corpus]:
    """Every party's documents with about half of its `each` canaries, and the record of all canaries.

    They are made of the rarer half of the words that the parties use, or of a public list, where there is one. Each has so
    many `different` words. Where a clip bounds the length of rows a few words suffice, and two canaries then have hardly a word
    in common, so none hides another. Where documents have embeddings, theirs are directions drawn at random. The seed decides
    words and directions, which an attacker knows anyway; the operating system's randomness decides the coins.
    """
    rng, fair = np.random.default_rng([seed, each]), OperatingSystem()
    whole = Corpus.concat(list(documents.values()))
    whole = whole if words is None else whole.project(words)
    often = whole.document_frequencies()
    by_rank = [whole.vocabulary[place] for place in np.argsort(-often, kind="stable") if often[place] >= _OFTEN]
    listed = tuple(sorted(by_rank[len(by_rank) // 2 :] or whole.vocabulary))
    made = {
        name: _made(name, fair.bytes(-(-each // 8)), each, listed, rng, min(different, len(listed)), own.embedding_width)
        for name, own in documents.items()
    }
    put = {name: Corpus.concat([documents[name], _plain(found.select(_coins(found)))]) for name, found in made.items()}
    return put, Corpus.concat(list(made.values()), name="canaries")


def record_of(run: Path, vocabulary: tuple[str, ...]) -> Canaries | None:
    """The canaries in the agreed words; None of a run without canaries."""
    if not (run / RECORD).is_file():
        return None
    record = Corpus.load(run / RECORD).gathered().project(vocabulary)
    assert record.parties is not None
    return Canaries(_plain(record), tuple(str(name) for name in record.parties), _coins(record))


def _made(
    party: str, thrown: bytes, each: int, words: tuple[str, ...], rng: np.random.Generator, long: int, width: int
) -> Corpus:
    """Canaries with words drawn from the whole list, so two of them share few words. The bits thrown say who takes part."""
    put = np.unpackbits(np.frombuffer(thrown, dtype=np.uint8), count=each).astype(bool)
    tokens = np.concatenate([rng.choice(len(words), long, replace=False) for _ in range(each)])
    coins = np.where(put, _IN, _OUT)
    names = np.full(each, party)
    ends = np.arange(1, each + 1) * long
    meant: dict[str, Any] = {"embeddings": rng.standard_normal((each, width)).astype(np.float32)} if width else {}
    made = Corpus.from_tokens(tokens, ends, words, name=f"canaries of {party}", **meant)
    return made.replace(labels=coins, parties=names)  # now, so that no coin is in the name of its canary


def _coins(record: Corpus) -> Array:
    assert record.labels is not None
    return np.asarray(record.labels == _IN)


def _plain(record: Corpus) -> Corpus:
    """The documents without their coins, as parties and attacks get them."""
    return record.replace(labels=None, parties=None)


# ---- the tables behind an answer, which no role stores --------------------------------------------------------------
# It is for the judge alone. It uses only what the party knew: its documents, the noise that it kept, and its state.


def replayed_tables(
    folder: RunFolder, vocabulary: tuple[str, ...], states: Mapping[tuple[int, str], State], serial: int, name: str
) -> TopicTables:
    """The table that this party counted in this round, and the table of the words before noise."""
    model, state = cast("Matched", folder.agreement.model), states[serial, name]
    with closing(make_party(folder, name)) as party:
        known = PartyDocuments(party.corpus)
        known.adopt(vocabulary, folder.agreement)
        documents = known.for_question(TRAIN)
        # with the noise that the party drew once and kept
        cohort = cohort_of(party.agreement.profile, party.members)
        context = RoundContext(cohort, OperatingSystem(), party.store, party.drawn)
        route = Route.through(model.query(state).terms, party.agreement.profile.mechanisms, cohort)
        noised = route.on_documents(documents, context)
    start = model.table(state)
    held = _RecordedDocuments(model.read(noised, start.words))
    counted = model.trained(start, cast("SampledDocuments", held), held.names(noised.keys))
    if noised.perturbed is None:
        return TopicTables(counted, counted)
    counts, topics = documents.counts, held.topics.astype(np.int64)
    in_order = np.repeat(counts.indices, counts.data) if documents.tokens is None else documents.tokens
    words = np.asarray(in_order, dtype=np.int64)  # that each slot holds
    if len(topics) != len(words):  # whole sentences are drawn
        topics = np.repeat(topics, np.diff(documents.sentence_ends, prepend=0))
    real = np.zeros(counted.shape)
    np.add.at(real, (topics, words), 1.0)
    return TopicTables(counted, real)


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
        self.topics = topics
        return self._held.counted(topics, table)


# ---- the ground truth -----------------------------------------------------------------------------------------------


def ground_truth_of(folder: RunFolder, rounds: Collection[RoundQuestion]) -> GroundTruth:
    """The documents of every party, and which of them took part in these rounds."""
    vocabulary, profile = vocabulary_of(folder), folder.agreement.profile
    sides = {name: adopted(folder, name, vocabulary) for name in folder.members}
    trained = {name: side.for_question(TRAIN) for name, side in sides.items()}
    others = {name: side.for_question(HELD_OUT) for name, side in sides.items()}
    canaries = record_of(folder.path, vocabulary)
    if canaries is not None:
        made = canaries.documents.keys
        apart = {name: own.select(~np.isin(own.keys, made)) for name, own in trained.items()}
        canaries = replace(canaries, others=apart)  # which an attacker may know
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
        embeddings={name: own.embeddings for name, own in trained.items() if own.embeddings is not None},
        other_embeddings={name: own.embeddings for name, own in others.items() if own.embeddings is not None},
        tables=lambda serial, name: replayed_tables(folder, vocabulary, states, serial, name),
        others={name: documents.counts for name, documents in others.items()},
        reachable=1.0 if in_batches else min((asked.terms.sampling for asked in training), default=1.0),
        public=public_facts(folder),
        canaries=canaries,
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


def _sentences(documents: Corpus) -> Any:
    """The counts of each sentence, in order; None if the words have no order."""
    if documents.tokens is None or documents.sentence_ends is None:
        return None
    ends = np.concatenate([[0], documents.sentence_ends])
    shape = (len(documents.sentence_ends), len(documents.vocabulary))
    counts = sparse.csr_array((np.ones(len(documents.tokens), dtype=np.int64), documents.tokens, ends), shape=shape)
    counts.sum_duplicates()
    return counts


def colluding_parties_of(folder: RunFolder, helpers: int) -> tuple[ColludingParty, ...]:
    """The last parties of the run with all that they hold."""
    vocabulary, found = vocabulary_of(folder), []
    for name in folder.members[len(folder.members) - helpers :]:
        with closing(PartyStore(folder.party(name))) as store:
            secrets = {str(key): store.get(str(key)) or b"" for (key,) in store.rows("SELECT key FROM store ORDER BY key")}
        found.append(ColludingParty(name, adopted(folder, name, vocabulary).for_question(TRAIN), secrets))
    return tuple(found)


def adopted(folder: RunFolder, name: str, vocabulary: tuple[str, ...]) -> PartyDocuments:
    documents = PartyDocuments(Corpus.load(folder.party(name) / "corpus.npz").gathered())
    documents.adopt(vocabulary, folder.agreement)
    return documents


def _drawn(documents: Corpus, asked: RoundQuestion, seed: int) -> Array:
    """The places of the documents that took part. Their keys and public numbers determine those of a batch."""
    if not asked.terms.batch or len(documents) == 0:
        return np.arange(len(documents))
    return np.asarray(batch_rows(documents.keys, asked.terms.batch, asked.number, seed))
