"""A party's documents, and which of them each question reads. It answers nothing.

Reading never fails towards the role that sent the words: documents that cannot be read count as none.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, replace
from securetm.federation.party.failure_log import FailureLog
from securetm.federation.questions import BEFORE_WORDS, COHERENCE, FREQUENCIES, HELD_OUT, PAIRS, TRAIN
from securetm.federation.refusal_errors import BadState
from securetm.plans.agreement import Agreement


@dataclass
class PartyDocuments:
    """A party's documents, whole and in the agreed words, split into training and held-out ones."""

    own: Corpus
    agreed: Corpus | None = None
    train: Corpus | None = None
    held_out: Corpus | None = None

    def adopt(self, vocabulary: tuple[str, ...], agreement: Agreement) -> None:
        whole = self.own.project(vocabulary)
        self.agreed = _with_words(whole)
        read = self.agreed if agreement.model.learns_words_only else whole
        plan, alone = agreement.plan, agreement.unit is not Unit.PERSON and agreement.budget is not None
        # The least key of a person's documents decides on which side of the split all of them are. Where each document is
        # protected by itself, it must not move other documents of its person. Keys do not depend on words, and lengths are
        # public where single words are protected: then the split does not depend on the words.
        drawn = read.without_persons() if alone else read
        self.train, held_out = drawn.split(1 - plan.training.held_out, plan.seed)
        self.held_out = _with_words(held_out)  # of others no word can be predicted

    def for_question(self, name: str) -> Corpus:
        """Returns the documents that this question reads."""
        if name in BEFORE_WORDS:
            return self.own
        in_agreed_words = {FREQUENCIES: self.agreed, COHERENCE: self.agreed, TRAIN: self.train, HELD_OUT: self.held_out}
        documents = {**in_agreed_words, PAIRS: self.train}[name]  # held-out documents are never learned from
        if documents is None:
            raise BadState("no vocabulary has been agreed on")
        return documents


def _with_words(documents: Corpus) -> Corpus:
    return documents.select(np.flatnonzero(documents.lengths() > 0))


def read_documents(words: tuple[str, ...], own: Corpus, agreement: Agreement, failure_log: FailureLog) -> PartyDocuments:
    """Reads the documents in these words. Where that fails, the failure is logged and the party has no documents."""
    with failure_log.logged():
        read = PartyDocuments(own)
        read.adopt(words, agreement)
        return read
    nothing = PartyDocuments(own.select(np.zeros(0, dtype=np.int64)))
    nothing.adopt(words, agreement)
    return replace(nothing, own=own)
