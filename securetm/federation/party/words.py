"""A party's side of the run's list of words: a public file's, or one that the coordinator makes by the plan's rule.

A party accepts one list in a run, no longer than the plan says, and the same for all parties in a sum. No party can check that
the list follows from the true answer: only the coordinator opens it, and it must not show rare words to anybody else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from securetm.contracts import Answer, Unit
from securetm.federation.party.documents import PartyDocuments, read_documents
from securetm.federation.party.hidden_words import check_columns, in_columns
from securetm.federation.party.state import PartyState
from securetm.federation.questions import MOST_CANDIDATES, TRAIN
from securetm.federation.refusal_errors import BadState, WrongAgreement
from securetm.federation.wire import wire
from securetm.models.questions.words import merge_words
from securetm.plans.profiles import BLIND
from securetm.sessions.identities import COORDINATOR
from securetm.settings import digest

CANDIDATES, LIST = "candidates", "list"


def agreed(adopt: wire.Adopt, own: PartyState) -> tuple[str, ...]:
    """Returns the words of that message, or refuses. No document is read, and a list that is refused binds nobody.

    Candidates may be rare words of others: they are kept until there is a list, which must be some of them; then only a hash.
    """
    agreement, public = own.agreement, own.agreement.words
    lines = adopt.words.count(b"\n") + 1  # bounded before words are made of the bytes: they take far more memory
    if adopt.candidates and agreement.plan.vocabulary.source != "union":
        raise BadState("the plan asks for no candidates")
    if public is not None and lines > len(public):
        raise WrongAgreement("vocabulary")
    if adopt.candidates and lines > MOST_CANDIDATES:
        raise BadState("there are more candidates than are counted")
    if not adopt.candidates and public is None and lines > len(agreement.longest_list):
        raise BadState("the list is longer than the plan says")
    words = merge_words(Answer(None, {COORDINATOR: {"words": np.frombuffer(adopt.words, np.int8)}}))
    if not words:
        raise BadState("there is no word in the list")
    if public is not None and words != public:
        raise WrongAgreement("vocabulary")
    if not adopt.candidates and not set(agreement.base_words) <= set(words):
        raise WrongAgreement("vocabulary")
    if agreement.plan.vocabulary.source == BLIND:
        check_columns(words, own)
    named, store = digest(list(words)), own.store
    if adopt.candidates:
        if not store.held_list(CANDIDATES) and not store.held_list(LIST):  # before their hash: no hash is without its words
            store.put(CANDIDATES, "\n".join(words).encode())
        store.hold_list(CANDIDATES, named)
        return words
    # Words that were not counted are refused, in whichever session that was.
    counted = store.get(CANDIDATES) if store.held_list(CANDIDATES) and not store.held_list(LIST) else None
    if counted is not None and not set(words) <= set(counted.decode().split("\n")):
        raise BadState("the list has words that were not counted")
    store.hold_list(LIST, named)
    store.drop(CANDIDATES)
    return words


def adopt_words(own: PartyState, adopt: wire.Adopt) -> tuple[bytes, ...]:
    """Takes the run's list of words, or the candidates for it.

    The documents that it holds decided before whether this party takes part. How many have these words changes nothing.
    """
    words = agreed(adopt, own)
    if (words, adopt.candidates) == (own.questions.vocabulary, own.questions.candidates):
        return ()  # the documents are read in these words already
    documents = read_in_words(own, words)
    with own.failure_log.logged():
        lengths = documents.for_question(TRAIN).lengths()
        if own.agreement.unit is Unit.WORD and len(lengths):  # the epsilon of a word times its length is a document's epsilon
            at = np.percentile(lengths, (50, 95), method="higher")  # of an even number the longer one: rather overstated
            own.store.keep_figures("document", {"median_words": float(at[0]), "p95_words": float(at[1])})
    if own.learner is not None and not adopt.candidates:
        own.learner.begin(words, own.store.memory)
    # Last, so that after a failure the next message tries again.
    own.questions.adopt(words, candidates=adopt.candidates)
    own.documents = documents
    return ()


def read_in_words(own: PartyState, words: tuple[str, ...]) -> PartyDocuments:
    """Reads the documents in these words; where words are hidden, in their columns."""
    corpus = own.corpus
    if own.agreement.plan.vocabulary.source == BLIND:
        with own.failure_log.logged():
            corpus = in_columns(own.corpus, own, words)
    return replace(read_documents(words, corpus, own.agreement, own.failure_log), own=own.corpus)
