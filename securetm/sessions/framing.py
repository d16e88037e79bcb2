"""Packs fields into bytes and reads them back: one framing and one byte order for all that is hashed, signed, sealed or sent.

All numbers are big-endian. It checks form and size before it makes anything, and never the meaning. A label stands before the
fields, so that nothing that was made for one purpose is accepted for another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from enum import Enum
from functools import cache
from itertools import pairwise

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.contracts import Message
from securetm.errors import Malformed, Refused

PROTOCOL = b"securetm sessions 4"  # comes before every label
VERSION = 4  # the first byte of every message; 3 had X25519 alone, 2 another framing in each sum
RECORDED = (3, VERSION)  # of messages in records of old runs: rounds look alike in both


class AnotherVersion(Refused):
    """{sender} speaks version {found} of the protocol of sessions, and this is version {expected}"""

    sender: str
    found: int
    expected: int
    hint = "install the same version of securetm on all sides; what older ones say is not safe from a later quantum computer"


class Label(Enum):
    """The purpose of a signature, a hash or a key. The text is in the bytes, and in the refusal."""

    # names of sessions and rounds
    ROSTER = "roster"
    ROUND = "round"
    # the set-up of a masked sum
    NONCE = "nonce"
    COMMITMENT = "commitment"
    COMMITS = "commits"
    REVEAL = "reveal"
    DEALT = "secret"
    DEALT_ALL = "secrets"
    POLICY = "policy"
    SETUP = "setup"
    GRAPH = "graph"
    SHARE = "share"
    PAIR = "keys of a pair"
    TOLD = "secret told to one"
    PAIR_SETUP = "keys of a pair in a set-up"
    PAIR_ROUNDS = "secrets of a pair"
    PAIR_ROUND = "secret of a pair"
    COPY = "copies of the secrets of pairs"
    SHARE_SEAL = "sealed shares"
    SHARES = "shares"
    SHARES_HELD = "shares of one holder"
    EPOCH = "epoch"
    RECEIPT = "receipt"
    # a round of a masked sum
    QUESTION = "question"
    VECTOR = "masked vector"
    OWN_MASK = "self mask"
    PAIR_MASK = "pair mask"
    SURVIVORS = "survivors"
    CONSENT = "list of survivors"
    UNMASK = "unmask"
    UNMASKED = "unmasked shares"
    # the key of an encrypted sum
    KEY_HELLO = "key of a set-up"
    SUM_KEY_SEAL = "sealed sum key"
    SUM_KEY_NAME = "name of a sum key"
    # words that the coordinator does not see
    WORDS_HELLO = "key of a set-up for words"
    WORDS_SEAL = "sealed key of words"
    WORDS_KEY_NAME = "name of a key of words"
    WORD_NAMES = "names of columns"
    # ledgers, under every aggregation
    LEDGER_HEAD = "head of a ledger"
    LEDGER_SEEN = "head of another's ledger"


HASH = 32


def framed(label: Label, *fields: bytes) -> bytes:
    """Returns protocol, label and fields, each after its length in four bytes: no two lists of fields give the same bytes."""
    return _begun(label) + b"".join([len(part).to_bytes(4, "big") + part for part in fields])


@cache
def _begun(label: Label) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in (PROTOCOL, label.value.encode()))


def hashed(label: Label, *fields: bytes) -> bytes:
    return hashlib.sha256(framed(label, *fields)).digest()


def derive(secret: bytes, salt: bytes, label: Label, *fields: bytes) -> bytes:
    """Returns a 32-byte key for one purpose only (HKDF-SHA256). The framed fields are its `info`."""
    return HKDF(hashes.SHA256(), HASH, salt, framed(label, *fields)).derive(secret)


def place_bytes(*places: int) -> bytes:
    """Packs places in the roster, two bytes each."""
    return b"".join(place.to_bytes(2, "big") for place in places)


def places_bytes(places: Collection[int]) -> bytes:
    return place_bytes(len(places), *places)


def head(kind: int, place: int | None = None) -> bytes:
    """Returns the beginning of a message: the version, its kind, and in a party's message the party's place in the roster."""
    return bytes((VERSION, kind)) + (b"" if place is None else place_bytes(place))


def listed(messages: Collection[bytes]) -> bytes:
    return place_bytes(len(messages)) + b"".join(messages)


class Reader:
    """Reads a message from its beginning, and refuses one that is too short, too long or out of order."""

    def __init__(self, message: Message, sender: str, *kinds: int, versions: Collection[int] = (VERSION,)) -> None:
        self._bytes, self._at, self._sender = memoryview(message), 0, sender
        if (version := self.number(1)) not in versions:
            raise AnotherVersion(sender, version, VERSION)
        self.kind = self.number(1)
        if kinds and self.kind not in kinds:
            raise self.malformed("another kind of message is expected")

    def malformed(self, problem: str) -> Malformed:
        return Malformed(self._sender, problem)

    def take(self, n: int) -> bytes:
        if n > len(self._bytes) - self._at:
            raise self.malformed("it is too short")
        self._at += n
        return bytes(self._bytes[self._at - n : self._at])

    def number(self, n: int) -> int:
        return int.from_bytes(self.take(n), "big")

    def count(self, most: int) -> int:
        """Reads a length. It may not exceed what both sides know."""
        if (found := self.number(2)) > most:
            raise self.malformed("a list is too long")
        return found

    def places(self, parties: int) -> tuple[int, ...]:
        """Reads a list of places, each once and in order."""
        found = tuple(self.number(2) for _ in range(self.count(parties)))
        if any(one >= two for one, two in pairwise(found)) or (found and found[-1] >= parties):
            raise self.malformed("a list of parties is out of order or names a stranger")
        return found

    def entries(self, places: Sequence[int], size: int) -> dict[int, bytes]:
        return {place: self.take(size) for place in places}

    def speaks_for(self, place: int) -> None:
        """Refuses a message that names another place than its sender's."""
        if self.number(2) != place:
            raise self.malformed("it names another sender")

    def messages(self, parties: int, size: int, kind: int) -> dict[int, bytes]:
        """Reads a list of whole messages of one size and kind, at most one from each party, in the order of the roster."""
        found: dict[int, bytes] = {}
        for _ in range(self.count(parties)):
            message = self.take(size)
            place = int.from_bytes(message[2:4], "big")
            if message[:4] != head(kind, place) or place >= parties or (found and place <= max(found)):
                raise self.malformed("a list of parties is out of order or names a stranger")
            found[place] = message
        return found

    def rest(self) -> memoryview:
        """Returns all that is left, without copying it."""
        self._at, start = len(self._bytes), self._at
        return self._bytes[start:]

    def end(self) -> None:
        if self._at != len(self._bytes):
            raise self.malformed("it is too long")


LONG = 1 << 20  # bytes from which on a message is handed on as it lies, and not as bytes of its own
ROOM = 1 << 12  # bytes in front and behind


class MessageBuffer(bytearray):
    """The buffer of one message. What was handed out of it is never written again."""

    def __init__(self, length: int) -> None:
        super().__init__(ROOM + length + ROOM)
        self._start, self._end = ROOM, ROOM + length

    @property
    def content(self) -> memoryview:
        """The message as far as it is written. It begins where numbers of any width may lie."""
        return memoryview(self)[self._start : self._end]

    def enclose(self, before: bytes, behind: bytes = b"") -> Message:
        """Writes these bytes around the message, and returns the whole: bytes of its own if it is short.

        Where it is long, that is a view that nobody can write to: to be measured, cut, hashed and sent.
        """
        if len(before) > self._start or len(behind) > len(self) - self._end:
            return b"".join((before, self.content, behind))
        with memoryview(self) as whole:
            whole[self._start - len(before) : self._start] = before
            whole[self._end : self._end + len(behind)] = behind
        self._start, self._end = self._start - len(before), self._end + len(behind)
        return self.content.toreadonly() if len(self.content) >= LONG else bytes(self.content)


def enclosed(before: bytes, message: Message, behind: bytes = b"") -> Message:
    """Returns a message between these bytes. Where it is all that lies in a roomy buffer, nothing is copied."""
    room: object = message.obj if isinstance(message, memoryview) else None
    if isinstance(room, MessageBuffer) and len(room.content) == len(message):
        return room.enclose(before, behind)
    return b"".join((before, message, behind))
