"""A party's documents as each question may see them. It answers nothing, and what it finds in them goes nowhere.

Reading never fails towards whoever sent the words: documents that cannot be read in them are none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from securetm.agreement import Agreement
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.failure_log import FailureLog
from securetm.federation.questions import COHERENCE, FREQUENCIES, HELD_OUT, JOINT, TRAIN, WORDS
from securetm.federation.refusal_errors import BadState
from securetm.federation.store import PartyStore


@dataclass
class PartyDocuments:
    """A party's documents, as each question may see them once a vocabulary is agreed on."""

    own: Corpus
    agreed: Corpus | None = None
    train: Corpus | None = None
    held_out: Corpus | None = None

    def adopt(self, vocabulary: tuple[str, ...], agreement: Agreement) -> None:
        """Reads the documents in the agreed words and sets the held-out part aside."""
        whole = self.own.project(vocabulary)
        self.agreed = whole.select(np.flatnonzero(whole.lengths() > 0))
        plan, alone = agreement.plan, agreement.unit is not Unit.PERSON and agreement.budget is not None
        # A person's documents lie on one side, which the least of their keys decides. Where each document is protected by
        # itself, none may move the others of its person. Keys say nothing of words, and lengths are public where words are
        # protected one by one: then nothing here depends on which words they are.
        drawn = replace(self.agreed, persons=None) if alone else self.agreed
        self.train, self.held_out = drawn.split(1 - plan.training.held_out, plan.seed)

    def for_question(self, name: str) -> Corpus:
        """What that question is answered from."""
        before = {WORDS: self.own, JOINT: self.own}
        after = {FREQUENCIES: self.agreed, COHERENCE: self.agreed, TRAIN: self.train, HELD_OUT: self.held_out}
        chosen = {**before, **after}
        if (documents := chosen[name]) is None:
            raise BadState("no vocabulary has been agreed on")
        return documents


def read_in(words: tuple[str, ...], own: Corpus, agreement: Agreement, failure_log: FailureLog) -> PartyDocuments:
    """The documents in these words; none of them, and a note at home, where they cannot be read."""
    with failure_log.logged():
        read = PartyDocuments(own)
        read.adopt(words, agreement)
        return read
    nothing = PartyDocuments(own.select(np.zeros(0, dtype=np.int64)))
    nothing.adopt(words, agreement)
    return replace(nothing, own=own)


def note_lengths(documents: Corpus, budget: Budget | None, store: PartyStore) -> None:
    """How long documents are, for their party's own store: what noise on single words means for a whole one goes by that."""
    lengths = documents.lengths()
    if budget is not None and budget.unit is Unit.WORD and len(lengths):
        at = np.percentile(lengths, (50, 95), method="higher")  # of an even number the longer one: rather overstated
        for name, words in zip(("document median_words", "document p95_words"), at, strict=True):
            store.now("INSERT OR REPLACE INTO figures VALUES (?, ?)", name, float(words))
