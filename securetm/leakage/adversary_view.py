"""What one adversary of a threat model saw of a recorded run, and what everybody knows. It opens no file.

An attack is given a `View` and nothing else: messages on the channels that its adversary sees, in memory. There is no folder
in it, no store and no document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from securetm.agreement import Agreement
from securetm.contracts import Adversary, Profile, State, TopicModel
from securetm.leakage.leakage_errors import NotGranted
from securetm.plans import Plan

MODEL, VOCABULARY = "model", "vocabulary"
SIZES = "sizes"  # of messages on any channel: such a message holds its length in bytes, as text, and nothing else


@dataclass(frozen=True)
class Message:
    """One message as it passed."""

    serial: int
    channel: str
    sender: str
    receiver: str
    content: bytes


@dataclass(frozen=True)
class PublicFacts:
    """What is secret from nobody: how the run was set up. Where documents lie is not in it."""

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
    """A party that helps the adversary: what it holds itself, and no other party does."""

    name: str
    documents: Any = field(repr=False)  # its training documents in the agreed words (contracts.Documents)
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # keys in its own store, by name


@dataclass(frozen=True)
class AdversaryView:
    """One adversary's eyes on one run, as far as one attack declared what it reads.

    `question` is what the judge puts to it (documents that may have been in the training, say), never the answer; `prepared`
    what the attack made of question and public facts beforehand; `again` the same eyes on a second run, one party apart.
    """

    adversary: Adversary
    public: PublicFacts
    seen: Mapping[str, tuple[Message, ...]]
    words: tuple[str, ...] | None = None
    weights: State | None = field(default=None, repr=False)
    insiders: tuple[ColludingParty, ...] = ()
    question: Any = field(default=None, repr=False)
    prepared: Any = field(default=None, repr=False)
    again: AdversaryView | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.insiders) > self.adversary.colludes_with_parties:
            raise NotGranted(f"what {len(self.insiders)} parties hold", self.adversary.name)
        more = {VOCABULARY: self.words is not None, MODEL: self.weights is not None}
        held = [*self.seen, *(channel for channel, there in more.items() if there)]
        for channel in held:
            if channel not in self.adversary.sees:
                raise NotGranted(channel, self.adversary.name)
        for channel, messages in self.seen.items():
            if any(message.channel != channel for message in messages):
                raise NotGranted(channel, self.adversary.name)

    def messages(self, channel: str) -> tuple[Message, ...]:
        """What passed on a channel, in order; a channel that was not granted is an error and not an empty list."""
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
