"""The secret key that the parties of an encrypted sum share, and the exchange that brings it to them, both halves.

Hello, the bundle of hellos, sealed keys, ready. One party draws the secret key and seals it to each of the others: the first
member in roster order that said hello, so that the order of arrival decides nothing. The coordinator carries the messages and
can read none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np

from securetm.aggregation.homomorphic.parameters import DEGREE
from securetm.aggregation.homomorphic.seal_library import draw_ternary
from securetm.contracts import Array, Entropy, Message, Parcel
from securetm.errors import Malformed, Refused, TooFewParties
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange
from securetm.sessions.framing import Label, Reader, derive, head, listed, places_bytes
from securetm.sessions.hybrid import (
    CIPHERTEXT,
    PUBLIC_KEYS,
    SECRET_KEYS,
    check_public_keys,
    public_keys,
    receive_secret,
    send_secret,
)
from securetm.sessions.identities import COORDINATOR, SIGNATURE, Identity, PinnedRoster
from securetm.sessions.sealing import TAG, End, Pair
from securetm.sessions.session_memory import SessionMemory


class UnlikeKeys(Refused):
    """{sender} encrypts under another key than the other parties"""

    sender: str


class BadCiphertext(Refused):
    """the ciphertexts from {sender} are refused: {problem}"""

    sender: str
    problem: str


SECRET = DEGREE // 4  # bytes: two bits a coefficient
BOX = CIPHERTEXT + SECRET + TAG
KEY_ID = 16
HELLO_SIZE = 4 + PUBLIC_KEYS + SIGNATURE


class SumKind(IntEnum):
    """What a message is. Odd kinds are sent by parties, even kinds by the coordinator. Masked sums have kinds below 21."""

    HELLO = 21
    BUNDLE = 22
    SEALED = 23
    KEY = 24
    READY = 25
    SUM = 26
    FRESH = 27


def pack_secret(ternary: Array) -> bytes:
    """Four coefficients a byte, the lowest bits first; -1, 0, 1 are 0, 1, 2."""
    pairs = (ternary + 1).astype(np.uint8).reshape(-1, 4)
    return (pairs[:, 0] | pairs[:, 1] << 2 | pairs[:, 2] << 4 | pairs[:, 3] << 6).astype(np.uint8).tobytes()


def unpack_secret(packed: bytes, sender: str) -> Array:
    """The secret polynomial, refused if it is none or nothing but zeros."""
    quads = np.frombuffer(packed, dtype=np.uint8)
    ternary = np.stack([quads >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel().astype(np.int64) - 1
    if len(ternary) != DEGREE or (ternary > 1).any() or not ternary.any():
        raise BadCiphertext(sender, "the secret key is no ternary polynomial")
    return ternary


def key_id(packed: bytes) -> bytes:
    """A name that reveals nothing about the key. All parties must encrypt under the same one."""
    return derive(packed, b"", Label.SUM_KEY_NAME)[:KEY_ID]


EPHEMERAL, SECRET_KEY, KEY_NAME = "sum set-up", "sum key", "sum key name"
LEAST = 2  # parties in a sum: over one party, it is that party's own vector


def keys_in(register: PinnedRoster, code: str, place: int, hello: bytes) -> bytes:
    """The public keys of a hello, refused unless the pinned identity signed them for this session, roster and profile."""
    name = register.name(place)
    reader = Reader(hello, name, SumKind.HELLO)
    reader.speaks_for(place)
    register.opened(place, name, hello, Label.KEY_HELLO, code.encode())
    found = reader.take(PUBLIC_KEYS)
    check_public_keys(found, name)
    return found


class KeyPartySetup(PartyExchange):
    """Run by a party, which then knows the secret key."""

    def __init__(self, identity: Identity, code: str, entropy: Entropy, memory: SessionMemory) -> None:
        self._identity, self._register, self._me = identity, identity.register, identity.place
        self._code, self._entropy, self._memory = code, entropy, memory
        self.answers = {SumKind.BUNDLE: self._generate, SumKind.KEY: self._take}

    def begin(self) -> Sequence[Parcel]:
        """Signed keys for this set-up alone; the private halves wait in the store for the sealed key."""
        ephemeral = self._entropy.bytes(SECRET_KEYS)
        self._memory.put(EPHEMERAL, ephemeral)
        hello = head(SumKind.HELLO, self._me) + public_keys(ephemeral)
        return ((COORDINATOR, self._identity.sign(Label.KEY_HELLO, hello, self._code.encode())),)

    def _generate(self, message: bytes) -> bytes:
        """A new secret key, sealed to each member whose hello its own identity signed."""
        reader = Reader(message, COORDINATOR, SumKind.BUNDLE)
        hellos = reader.messages(len(self._register), HELLO_SIZE, SumKind.HELLO)
        reader.end()
        publics = {place: keys_in(self._register, self._code, place, hello) for place, hello in hellos.items()}
        ephemeral = self._ephemeral()
        if publics.get(self._me) != public_keys(ephemeral) or len(publics) < LEAST:
            raise Malformed(COORDINATOR, "the bundle lacks this party or the others")
        packed = pack_secret(draw_ternary(self._entropy))
        others = [place for place in publics if place != self._me]
        boxes = b"".join(self._box(ephemeral, (place, publics[place]), packed) for place in others)
        self._settle(packed)
        return head(SumKind.SEALED, self._me) + key_id(packed) + places_bytes(others) + boxes

    def _take(self, message: bytes) -> bytes:
        """Opens the key that another member drew."""
        reader = Reader(message, COORDINATOR, SumKind.KEY)
        hello, ciphertext, box = reader.take(HELLO_SIZE), reader.take(CIPHERTEXT), reader.take(BOX - CIPHERTEXT)
        reader.end()
        ephemeral, generator = self._ephemeral(), int.from_bytes(hello[2:4], "big")
        if generator >= len(self._register):
            raise Malformed(COORDINATOR, "it names a member that is not in the roster")
        public = keys_in(self._register, self._code, generator, hello)
        secrets = receive_secret(ephemeral, public, ciphertext, self._register.name(generator))
        ends = (generator, public), (self._me, public_keys(ephemeral))
        pair = Pair.of(self._register, self._code.encode(), ends, secrets, ciphertext)
        packed = pair.unseal(Label.SUM_KEY_SEAL, generator, self._me, box)
        unpack_secret(packed, self._register.name(generator))
        self._settle(packed)
        return head(SumKind.READY, self._me) + key_id(packed)

    def _box(self, ephemeral: bytes, recipient: End, packed: bytes) -> bytes:
        """The key sealed to one member, behind the ciphertext that tells it how to open it."""
        place, public = recipient
        secrets, ciphertext = send_secret(ephemeral, public, self._register.name(place))
        ends = (self._me, public_keys(ephemeral)), recipient
        pair = Pair.of(self._register, self._code.encode(), ends, secrets, ciphertext)
        return ciphertext + pair.seal(Label.SUM_KEY_SEAL, self._me, place, packed)

    def _ephemeral(self) -> bytes:
        ephemeral = self._memory.get(EPHEMERAL)
        if not ephemeral:
            raise Malformed(COORDINATOR, "no set-up is open")
        return ephemeral

    def _settle(self, packed: bytes) -> None:
        """Keeps the key, and erases the private key that opens its box."""
        self._memory.put(SECRET_KEY, packed)
        self._memory.put(EPHEMERAL, b"")


class KeyCoordinatorSetup(CoordinatorExchange):
    """Run by the coordinator, which then knows the name of the key: sixteen bytes that reveal nothing about it."""

    def __init__(self, register: PinnedRoster, code: str, memory: SessionMemory) -> None:
        super().__init__(register)
        self._code, self._memory = code, memory
        self.ask(range(len(register)), self._take_hello, self._ask_generator)

    def _take_hello(self, place: int, sender: str, message: Message) -> bytes:
        if len(message) != HELLO_SIZE:
            raise Malformed(sender, f"it has {len(message)} bytes where {HELLO_SIZE} are agreed")
        hello = bytes(message)
        keys_in(self._register, self._code, place, hello)
        return hello

    def _ask_generator(self, hellos: Mapping[int, bytes]) -> Sequence[Parcel]:
        """The first member that said hello and is still there draws the key."""
        if len(hellos) < LEAST:
            raise TooFewParties(len(hellos), len(self._register), LEAST)
        self._hellos, generator = hellos, min(hellos)
        self.ask([generator], self._take_boxes, self._hand_out)
        return self.to({generator: head(SumKind.BUNDLE) + listed(hellos.values())})

    def _take_boxes(self, place: int, sender: str, message: Message) -> tuple[bytes, Mapping[int, bytes]]:
        reader = Reader(message, sender, SumKind.SEALED)
        reader.speaks_for(place)
        name, others = reader.take(KEY_ID), reader.places(len(self._register))
        if set(others) != set(self._hellos) - {place}:
            raise Malformed(sender, "it did not seal the key to exactly the others")
        boxes = reader.entries(others, BOX)
        reader.end()
        return name, boxes

    def _hand_out(self, came: Mapping[int, tuple[bytes, Mapping[int, bytes]]]) -> Sequence[Parcel]:
        """Each box to its recipient, behind the hello of who drew the key."""
        if not came:
            return self._ask_generator({place: hello for place, hello in self._hellos.items() if place != min(self._hellos)})
        ((generator, (self._name, boxes)),) = came.items()
        self._memory.put(KEY_NAME, self._name)
        self.ask(boxes, self._take_ready)
        return self.to({place: head(SumKind.KEY) + self._hellos[generator] + box for place, box in boxes.items()})

    def _take_ready(self, place: int, sender: str, message: Message) -> None:
        reader = Reader(message, sender, SumKind.READY)
        reader.speaks_for(place)
        if reader.take(KEY_ID) != self._name:
            raise UnlikeKeys(sender)
        reader.end()
