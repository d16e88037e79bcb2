"""Which list of words a run has: a public file's, or one that the coordinator makes by the plan's rule of what was opened.

A party holds it to one list a run, no longer than the plan says, the same for all who are in a sum. That it follows from the
true answer no party can check: the coordinator alone opens it, and its rare words are nobody else's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from securetm.aggregation.plain import COORDINATOR
from securetm.contracts import Answer, Array
from securetm.errors import BadState, WrongAgreement
from securetm.federation import wire
from securetm.federation.questions import Questions
from securetm.federation.store import PartyStore
from securetm.models.questions import choose_vocabulary, merge_words
from securetm.plans import Plan
from securetm.tables import digest

CANDIDATES, LIST = "candidates", "list"


def chosen(plan: Plan, candidates: tuple[str, ...], documents: int, frequencies: Array) -> tuple[str, ...]:
    """The list that the plan's rule makes of an opened answer; under a budget nobody knows how many documents there are."""
    choice = plan.vocabulary
    share = choice.max_share if documents else int(frequencies.sum())
    return choose_vocabulary(candidates, documents, frequencies, choice.max_words, choice.min_documents, share)


def message_of(words: tuple[str, ...], *, candidates: bool = False) -> wire.Adopt:
    """As it is sent to the parties."""
    return wire.Adopt("\n".join(words).encode(), candidates)


def agreed(adopt: wire.Adopt, plan: Plan, questions: Questions, store: PartyStore) -> tuple[str, ...]:
    """Run by a party: the words of that message, or a refusal by name. No document is read for it.

    Only a hash of them is kept: candidates may be rare words of others.
    """
    words = merge_words(Answer(None, {COORDINATOR: {"words": np.frombuffer(adopt.words, np.int8)}}))
    public = plan.vocabulary.public_words()
    if not words:
        raise BadState("there is no word in the list")
    if public is not None and words != public:
        raise WrongAgreement("vocabulary")
    if adopt.candidates and plan.vocabulary.source != "union":
        raise BadState("the plan asks for no candidates")
    if not adopt.candidates and public is None:
        _check(words, plan, questions)
    store.hold_list(CANDIDATES if adopt.candidates else LIST, digest(list(words)))
    return words


def _check(words: tuple[str, ...], plan: Plan, questions: Questions) -> None:
    """What can be held against a list that somebody else made: its length, and that it is a part of what was counted."""
    if len(words) > plan.vocabulary.max_words:
        raise BadState("the list is longer than the plan says")
    if questions.candidates and not set(words) <= set(questions.vocabulary):
        raise BadState("the list has words that were not counted")


@dataclass(frozen=True)
class Said:
    """What the coordinator told the parties about words, and how far its questions were by then."""

    words: tuple[str, ...]
    serial: int
    numbers: Mapping[str, int]

    def pack(self) -> bytes:
        """As it lies on the coordinator's disk."""
        return json.dumps({"words": self.words, "serial": self.serial, "numbers": dict(self.numbers)}).encode()

    @classmethod
    def unpack(cls, stored: bytes) -> Self:
        """What `pack` made."""
        said = json.loads(stored)
        return cls(tuple(said["words"]), int(said["serial"]), said["numbers"])
