"""Parties whose clocks a test moves: with the documents that they read, and with every look at the clock.

The parties are real. A run by these clocks takes the same time on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from securetm.accounting.composition import affordable
from securetm.accounting.ledger import accounts
from securetm.corpus.corpus import Corpus
from securetm.federation.budget import guard
from securetm.federation.party.party import Party
from securetm.federation.party.reply_times import PacedParty
from securetm.models.gradients import StepQuery

PER_DOCUMENT = 0.25  # seconds that a document takes by these clocks
LOOKED = 0.001  # and a look at one
OTHERWISE = 0.02  # most that the looks during one message come to
MEASURED = 2  # answers that are computed only to see how long they take


@dataclass
class Hands:
    """A clock that moves when documents are read, when it is looked at, and when somebody waits."""

    at: float = 100.0
    waiting: bool = True

    def now(self) -> float:
        self.at += LOOKED
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += max(0.0, seconds) if self.waiting else 0.0


@dataclass
class Overheard:
    """A party as the network sees it: what it was asked, and how long its reply took by its own clock."""

    party: Party
    waiting: bool = True
    slow: int = -1  # the answer that takes 400 times as long as it should
    composing: float = 0.0  # seconds that it takes to compose privacy losses
    read: list[int] = field(default_factory=list)  # how many documents each answer read
    after: dict[str, list[float]] = field(default_factory=dict)  # seconds, by what was asked

    def __post_init__(self) -> None:
        self.hands = Hands(waiting=self.waiting)
        self.paced = PacedParty(self.party, self.hands)

    def handle(self, message: bytes) -> bytes:
        begun, answer = self.hands.at, StepQuery.answer

        def slowly(query: StepQuery, documents: Any, *others: Any) -> None:
            if isinstance(documents, Corpus):  # not those that are made up to try a model's rows
                self.hands.at += PER_DOCUMENT * len(documents) * (400 if len(self.read) == self.slow else 1)
                self.read.append(len(documents))
            answer(query, documents, *others)

        def composed(*asked: Any) -> int:
            self.hands.at += self.composing
            return affordable(*asked)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(StepQuery, "answer", slowly)
            patched.setattr(guard, "affordable", composed)
            patched.setattr(accounts, "affordable", composed)
            reply = self.paced.handle(message)
        self.after.setdefault(self.paced.party.heard, []).append(self.hands.at - begun)
        return reply

    def close(self) -> None:
        self.paced.close()
