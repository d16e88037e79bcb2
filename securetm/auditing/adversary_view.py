"""The part of a recorded run that one adversary of a threat model saw, and the public facts. This module opens no file.

An attack gets an `AdversaryView` and nothing else: the messages on the channels that its adversary sees.
It gets no folder, no store and no document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from securetm.auditing.leakage_errors import NotGranted
from securetm.contracts import Adversary, Profile, State, TopicModel
from securetm.plans.agreement import Agreement
from securetm.plans.schema import Plan

MODEL, VOCABULARY = "model", "vocabulary"
TIMES = "times"  # of replies that a network carried; the content is how many seconds after its request one came, as text
SIZES = "sizes"  # of the messages on all channels; the content of such a message is a length in bytes, as text


@dataclass(frozen=True)
class Message:
    """One recorded message."""

    serial: int
    channel: str
    sender: str
    receiver: str
    content: bytes


@dataclass(frozen=True)
class PublicFacts:
    """How the run was set up. Everybody knows this. It holds no path of documents."""

    members: tuple[str, ...]
    agreement: Agreement

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.agreement.plan

    @property
    def profile(self) -> Profile:
        """The profile of the run."""
        return self.agreement.profile

    @property
    def model(self) -> TopicModel:
        """The model that is trained."""
        return self.agreement.model


@dataclass(frozen=True)
class ColludingParty:
    """All that a colluding party holds; it shares everything with the adversary."""

    name: str
    documents: Any = field(repr=False)  # its training documents in the agreed words (contracts.Documents)
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # the keys in its own store, by name


@dataclass(frozen=True)
class AdversaryView:
    """What one adversary sees of one run, limited to the channels that one attack declares.

    `question` is the judge's question, never the answer; `redrawn` makes the question of the control. `prepared` is what the
    attack computed from the question and the public facts. `again` is the view of a second run without some parties.
    """

    adversary: Adversary
    public: PublicFacts
    seen: Mapping[str, tuple[Message, ...]]
    words: tuple[str, ...] | None = None
    weights: State | None = field(default=None, repr=False)
    insiders: tuple[ColludingParty, ...] = ()
    question: Any = field(default=None, repr=False)
    redrawn: Callable[[np.random.Generator], Any] | None = field(default=None, repr=False)
    prepared: Any = field(default=None, repr=False)
    again: AdversaryView | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.insiders) > self.adversary.colludes_with_parties:
            raise NotGranted(f"what {len(self.insiders)} parties hold", self.adversary.name)
        beside = ((VOCABULARY, self.words), (MODEL, self.weights))
        for channel in (*self.seen, *(channel for channel, held in beside if held is not None)):
            if channel not in self.adversary.sees or any(one.channel != channel for one in self.seen.get(channel, ())):
                raise NotGranted(channel, self.adversary.name)

    @property
    def helpers(self) -> frozenset[str]:
        """The names of the colluding parties."""
        return frozenset(insider.name for insider in self.insiders)

    def messages(self, channel: str) -> tuple[Message, ...]:
        """The messages on a channel, in order. A channel that was not granted is an error, not an empty list."""
        if channel not in self.seen:
            raise NotGranted(channel, self.adversary.name)
        return self.seen[channel]

    def vocabulary(self) -> tuple[str, ...]:
        """The agreed list of words."""
        if self.words is None:
            raise NotGranted(VOCABULARY, self.adversary.name)
        return self.words

    def model_state(self) -> State:
        """The finished shared model."""
        if self.weights is None:
            raise NotGranted(MODEL, self.adversary.name)
        return self.weights
