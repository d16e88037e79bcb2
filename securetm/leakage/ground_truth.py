"""What the parties really held, read out of their own folders for the judge. No attack may import it, or meets a folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Sampling
from securetm.corpus.corpus import Corpus
from securetm.federation.documents import Documents
from securetm.federation.folder import RunFolder
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.store import PartyStore
from securetm.leakage.adversary_view import ColludingParty
from securetm.leakage.attack import Canaries, GroundTruth
from securetm.leakage.canaries import record_of
from securetm.leakage.demonstration import claimed_by
from securetm.leakage.reading import RoundQuestion
from securetm.leakage.recorded import public_facts, states_of, vocabulary_of
from securetm.leakage.replay import replayed_tables
from securetm.mechanisms.sampling import batch_rows


def ground_truth_of(folder: RunFolder, rounds: Collection[RoundQuestion]) -> GroundTruth:
    """Every party's documents, and which of them took part in these rounds, by the parties' own reading of the plan."""
    vocabulary = vocabulary_of(folder)
    sides = {name: _adopted(folder, name, vocabulary) for name in folder.members}
    held = {name: sides[name].for_question(TRAIN).counts for name in folder.members}
    others = {name: sides[name].for_question(HELD_OUT).counts for name in folder.members}
    sentences = {name: one for name in folder.members if (one := _sentences(sides[name].for_question(TRAIN))) is not None}
    in_batches = any(mechanism.sampling is Sampling.PUBLIC for mechanism in folder.agreement.profile.mechanisms)
    batches = {
        (asked.serial, name): _batch(counts, asked, folder.plan.seed)
        for asked in rounds
        if asked.question == TRAIN and (in_batches or not asked.terms.batch)
        for name, counts in held.items()
    }
    states = states_of(folder, {asked.serial for asked in rounds})
    truth = GroundTruth(
        vocabulary, held, batches, lambda serial, name: replayed_tables(folder, vocabulary, states, serial, name), others
    )
    drawn = [asked.terms.sampling for asked in rounds if asked.question == TRAIN and not in_batches]
    truth = replace(truth, reachable=min(drawn, default=1.0), sentences=sentences)
    return replace(
        truth, public=public_facts(folder), canaries=_canaries(folder, vocabulary, sides), claimed=claimed_by(folder)
    )


def _sentences(documents: Corpus) -> Any:
    """Counts of each sentence, in the order of reading; None of documents whose words have no order."""
    if documents.tokens is None or documents.sentence_ends is None:
        return None
    ends = np.concatenate([[0], documents.sentence_ends])
    shape = (len(documents.sentence_ends), len(documents.vocabulary))
    counts = sparse.csr_array((np.ones(len(documents.tokens), dtype=np.int64), documents.tokens, ends), shape=shape)
    counts.sum_duplicates()
    return counts


def _canaries(folder: RunFolder, vocabulary: tuple[str, ...], sides: Mapping[str, Documents]) -> Canaries | None:
    """The judge's record, and what the parties trained on beside: who looks for one document may know all others."""
    if (found := record_of(folder.path, vocabulary)) is None:
        return None
    trained = {name: side.for_question(TRAIN) for name, side in sides.items()}
    made = found.documents.keys
    return replace(found, others={name: own.select(~np.isin(own.keys, made)) for name, own in trained.items()})


def colluding_parties_of(folder: RunFolder, helpers: int) -> tuple[ColludingParty, ...]:
    """The last parties, as they tell all they hold to somebody who attacks the others."""
    vocabulary, names = vocabulary_of(folder), folder.members[len(folder.members) - helpers :]
    return tuple(ColludingParty(n, _adopted(folder, n, vocabulary).for_question(TRAIN), _secrets(folder, n)) for n in names)


def _secrets(folder: RunFolder, name: str) -> Mapping[str, bytes]:
    """Keys, prekeys and whatever else this party keeps for the rounds, out of its own store."""
    store = PartyStore(folder.party(name))
    found = {str(key): store.get(str(key)) or b"" for (key,) in store.rows("SELECT key FROM store ORDER BY key")}
    store.close()
    return found


def _adopted(folder: RunFolder, name: str, vocabulary: tuple[str, ...]) -> Documents:
    documents = Documents(Corpus.load(folder.party(name) / "corpus.npz"))
    documents.adopt(vocabulary, folder.agreement)
    return documents


def _batch(counts: Any, asked: RoundQuestion, seed: int) -> Any:
    """The order of shuffled batches follows from public numbers; which documents these are only the judge can say."""
    if not asked.terms.batch or counts.shape[0] == 0:
        return counts
    return counts[np.asarray(batch_rows(counts.shape[0], asked.terms.batch, asked.number, seed))]
