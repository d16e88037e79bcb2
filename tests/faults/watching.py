"""Sees every message that a party reads or sends in a test, and says what no fault may bring about. It tests nothing itself.

A reply that a fault lost has left the party all the same, so it counts like any other.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from securetm.accounting.ledger import Ledger
from securetm.aggregation.masked.messages import Kind, read_header, read_outcome
from securetm.contracts import Entropy
from securetm.entropy import OperatingSystem, Seeded
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.questions import digest_of_arrays
from securetm.federation.wire import wire
from securetm.sessions.framing import Reader

Number = tuple[str, str, int]  # a party, a question and its number


@dataclass
class Repeated:
    """Randomness of a party: the same for the same question and number, whatever happened before; else the operating system's.

    So noise that is drawn again is the same noise, and a run under a budget ends with the same model.
    """

    name: str
    stream: Entropy = field(default_factory=OperatingSystem)

    def ask(self, question: str, number: int) -> None:
        """What is drawn from now on is drawn for that answer."""
        self.stream = Seeded(hashlib.sha256(f"{self.name} {question} {number}".encode()).digest(), unsafe=True)

    def bytes(self, n: int) -> bytes:
        """The next n bytes."""
        return self.stream.bytes(n)


@dataclass
class Monitor:
    """What the parties of one run did, over all sessions."""

    hidden: bool = False  # whether it is a masked sum
    masked: dict[tuple[str, bytes, int], bytes] = field(default_factory=dict)  # by party, set-up and prekey
    opened: dict[Number, set[tuple[int, ...]]] = field(default_factory=dict)  # lists of survivors over which shares were given
    about: dict[Number, set[tuple[str, ...]]] = field(default_factory=dict)  # what was answered: cohort and state
    answered: Counter[Number] = field(default_factory=Counter)
    kills: Counter[Number] = field(default_factory=Counter)  # while a question was answered
    replies: Counter[str] = field(default_factory=Counter)
    _asked: dict[str, wire.Ask] = field(default_factory=dict)
    _entropy: dict[str, Repeated] = field(default_factory=dict)

    def made(self, party: Party) -> None:
        """A party was made, from its files."""
        self._entropy[party.name] = Repeated(party.name)
        party.entropy = self._entropy[party.name]
        self._asked.pop(party.name, None)

    def stage(self, request: bytes) -> str:
        """What kind of message it is."""
        _, body = wire.unpack_request(request)
        what = f" {body.question} {body.number}" if isinstance(body, wire.Ask) else ""
        return type(body).__name__ + what

    def request(self, name: str, request: bytes) -> None:
        """A party reads that."""
        _, body = wire.unpack_request(request)
        self._entropy[name].stream = OperatingSystem()
        if isinstance(body, wire.Ask):
            self._asked[name] = body
            self._entropy[name].ask(body.question, body.number)

    def killed(self, name: str, request: bytes) -> None:
        """A party was killed over that."""
        _, body = wire.unpack_request(request)
        if isinstance(body, wire.Ask):
            self.kills[name, body.question, body.number] += 1

    def reply(self, name: str, request: bytes, reply: bytes) -> None:
        """A party sends that."""
        _, said = wire.unpack_reply(reply, name)
        _, body = wire.unpack_request(request)
        if isinstance(said, wire.Refusal):
            self.replies[f"{said.name} {type(body).__name__}"] += 1
            return
        self.replies["Accepted"] += 1
        if isinstance(body, wire.Ask):
            number = (name, body.question, body.number)
            self.answered[number] += 1
            self.about.setdefault(number, set()).add((*body.members, digest_of_arrays(body.state).hex()))
        for parcel in said.parcels:
            self._masked_sum(name, body, parcel)

    def _masked_sum(self, name: str, body: wire.Body, parcel: bytes) -> None:
        if not self.hidden or not parcel or not isinstance(body, wire.Ask | wire.Forward):
            return
        kind = Reader(parcel, name).kind
        if kind == Kind.MASKED:
            header = read_header(parcel, name)
            before = self.masked.setdefault((name, header.at.epoch, header.at.index), parcel)
            assert before == parcel, f"{name} used prekey {header.at.index} twice"
        if kind == Kind.UNMASKED and isinstance(body, wire.Forward):
            ask, outcome = self._asked[name], read_outcome(Reader(body.parcel, "", Kind.UNMASK), 4096)
            self.opened.setdefault((name, ask.question, ask.number), set()).add(outcome.survivors)

    def check(self) -> None:
        """No number was answered about two things, or opened over two lists of survivors."""
        assert {number: lists for number, lists in self.opened.items() if len(lists) > 1} == {}
        assert {number: states for number, states in self.about.items() if len(states) > 1} == {}


def charges(folder: RunFolder) -> Mapping[Number, int]:
    """How often each party's ledger charged for each serial number of a question."""
    found: Counter[Number] = Counter()
    for name in folder.members:
        with Ledger.read(folder.ledger(name)) as ledger:
            for entry in ledger.entries():
                if entry.content["kind"] == "spent":
                    about = entry.content["about"]
                    found[name, about["question"], about["serial"]] += 1
    return found
