"""A secret that the parties share and the coordinator does not know, and the exchange that brings it to them, both halves.

Hello, the bundle of hellos, sealed secrets, ready. One party draws the secret and seals it to each of the others: the first
member in roster order that said hello, so that the order of arrival decides nothing. The coordinator carries the messages and
can read none. Keys of encrypted sums and of words without names are such secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from securetm.contracts import Entropy, Message, Parcel
from securetm.data_classes import dataclass
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
from securetm.sessions.sealing import TAG, Pair
from securetm.sessions.session_memory import SessionMemory


class UnlikeKeys(Refused):
    """{sender} has another key than the other parties"""

    sender: str


KEY_ID = 16
HELLO_SIZE = 4 + PUBLIC_KEYS + SIGNATURE
LEAST = 2  # parties in a sum: over one party, it is that party's own vector


class KeyKind(IntEnum):
    """What a message is. Odd kinds are sent by parties, even kinds by the coordinator. Masked sums have kinds below 21."""

    HELLO = 21
    BUNDLE = 22
    SEALED = 23
    KEY = 24
    READY = 25


@dataclass(frozen=True)
class SharedSecret:
    """What is shared: how it is drawn, checked and named, and the labels of its messages."""

    size: int
    draw: Callable[[Entropy], bytes]
    check: Callable[[bytes, str], object]  # refuses a secret of that sender that none of this kind is
    hello: Label
    seal: Label
    name: Label
    about: bytes = b""  # what it is for, beside what the labels say
    kept_as: str = "sum"  # the beginning of its names in the memory of a session

    @property
    def box(self) -> int:
        """Bytes of the secret as it is sealed to one party, behind the ciphertext that tells it how to open it."""
        return CIPHERTEXT + self.size + TAG

    @property
    def key(self) -> str:
        """Under what the secret is kept. The private keys of its set-up, and its name, are kept beside it."""
        return f"{self.kept_as} key"

    def named(self, secret: bytes) -> bytes:
        """A name that reveals nothing about the secret. All parties must have the same one."""
        return derive(secret, b"", self.name)[:KEY_ID]

    def keys_in(self, register: PinnedRoster, place: int, hello: bytes) -> bytes:
        """The public keys of a hello, refused unless the pinned identity signed them for this session, roster and profile."""
        name = register.name(place)
        reader = Reader(hello, name, KeyKind.HELLO)
        reader.speaks_for(place)
        register.opened(place, name, hello, self.hello, self.about)
        found = reader.take(PUBLIC_KEYS)
        check_public_keys(found, name)
        return found

    def longest(self, parties: int) -> tuple[int, int]:
        """The bytes of the longest message from a party and to one."""
        up = max(HELLO_SIZE, 4 + KEY_ID + 2 + parties * (2 + self.box))
        return up, max(4 + parties * HELLO_SIZE, 2 + HELLO_SIZE + self.box)


class SecretPartySetup(PartyExchange):
    """Run by a party, which then knows the secret."""

    def __init__(self, identity: Identity, shared: SharedSecret, entropy: Entropy, memory: SessionMemory) -> None:
        self._identity, self._register, self._me = identity, identity.register, identity.place
        self._shared, self._entropy, self._memory = shared, entropy, memory
        self._set_up = f"{shared.kept_as} set-up"
        self.answers = {KeyKind.BUNDLE: self._generate, KeyKind.KEY: self._take}

    def begin(self) -> Sequence[Parcel]:
        """Signed keys for this set-up alone; the private halves wait in the store for the sealed key."""
        ephemeral = self._entropy.bytes(SECRET_KEYS)
        self._memory.put(self._set_up, ephemeral)
        hello = head(KeyKind.HELLO, self._me) + public_keys(ephemeral)
        return ((COORDINATOR, self._identity.sign(self._shared.hello, hello, self._shared.about)),)

    def _generate(self, message: bytes) -> bytes:
        """A new secret, sealed to each member whose hello its own identity signed."""
        reader = Reader(message, COORDINATOR, KeyKind.BUNDLE)
        hellos = reader.messages(len(self._register), HELLO_SIZE, KeyKind.HELLO)
        reader.end()
        publics = {place: self._shared.keys_in(self._register, place, hello) for place, hello in hellos.items()}
        ephemeral = self._ephemeral()
        if publics.get(self._me) != public_keys(ephemeral) or len(publics) < LEAST:
            raise Malformed(COORDINATOR, "the bundle lacks this party or the others")
        packed = self._shared.draw(self._entropy)
        others, boxes = [place for place in publics if place != self._me], b""
        for place in others:  # the secret sealed to one member, behind the ciphertext that tells it how to open it
            secrets, ciphertext = send_secret(ephemeral, publics[place], self._register.name(place))
            ends = (self._me, public_keys(ephemeral)), (place, publics[place])
            pair = Pair.of(self._register, self._shared.about, ends, secrets, ciphertext)
            boxes += ciphertext + pair.seal(self._shared.seal, self._me, place, packed)
        self._settle(packed)
        return head(KeyKind.SEALED, self._me) + self._shared.named(packed) + places_bytes(others) + boxes

    def _take(self, message: bytes) -> bytes:
        reader = Reader(message, COORDINATOR, KeyKind.KEY)
        hello, ciphertext, box = reader.take(HELLO_SIZE), reader.take(CIPHERTEXT), reader.take(self._shared.box - CIPHERTEXT)
        reader.end()
        ephemeral, generator = self._ephemeral(), int.from_bytes(hello[2:4], "big")
        if generator >= len(self._register):
            raise Malformed(COORDINATOR, "it names a member that is not in the roster")
        public = self._shared.keys_in(self._register, generator, hello)
        secrets = receive_secret(ephemeral, public, ciphertext, self._register.name(generator))
        ends = (generator, public), (self._me, public_keys(ephemeral))
        pair = Pair.of(self._register, self._shared.about, ends, secrets, ciphertext)
        packed = pair.unseal(self._shared.seal, generator, self._me, box)
        self._shared.check(packed, self._register.name(generator))
        self._settle(packed)
        return head(KeyKind.READY, self._me) + self._shared.named(packed)

    def _ephemeral(self) -> bytes:
        ephemeral = self._memory.get(self._set_up)
        if not ephemeral:
            raise Malformed(COORDINATOR, "no set-up is open")
        return ephemeral

    def _settle(self, packed: bytes) -> None:
        """Keeps the secret, and erases the private key that opens its box."""
        self._memory.put(self._shared.key, packed)
        self._memory.put(self._set_up, b"")


class SecretCoordinatorSetup(CoordinatorExchange):
    """Run by the coordinator, which then knows the name of the secret: sixteen bytes that reveal nothing about it."""

    def __init__(self, register: PinnedRoster, shared: SharedSecret, memory: SessionMemory) -> None:
        super().__init__(register)
        self._shared, self._memory = shared, memory
        self.ask(range(len(register)), self._take_hello, self._ask_generator)

    def _take_hello(self, place: int, sender: str, message: Message) -> bytes:
        if len(message) != HELLO_SIZE:
            raise Malformed(sender, f"it has {len(message)} bytes where {HELLO_SIZE} are agreed")
        hello = bytes(message)
        self._shared.keys_in(self._register, place, hello)
        return hello

    def _ask_generator(self, hellos: Mapping[int, bytes]) -> Sequence[Parcel]:
        """The first member that said hello and is still there draws the key."""
        if len(hellos) < LEAST:
            raise TooFewParties(len(hellos), len(self._register), LEAST)
        self._hellos, generator = hellos, min(hellos)
        self.ask([generator], self._take_boxes, self._hand_out)
        return self.to({generator: head(KeyKind.BUNDLE) + listed(hellos.values())})

    def _take_boxes(self, place: int, sender: str, message: Message) -> tuple[bytes, Mapping[int, bytes]]:
        reader = Reader(message, sender, KeyKind.SEALED)
        reader.speaks_for(place)
        name, others = reader.take(KEY_ID), reader.places(len(self._register))
        if set(others) != set(self._hellos) - {place}:
            raise Malformed(sender, "it did not seal the key to exactly the others")
        boxes = reader.entries(others, self._shared.box)
        reader.end()
        return name, boxes

    def _hand_out(self, came: Mapping[int, tuple[bytes, Mapping[int, bytes]]]) -> Sequence[Parcel]:
        """Each box to its recipient, behind the hello of who drew the key."""
        if not came:
            return self._ask_generator({place: hello for place, hello in self._hellos.items() if place != min(self._hellos)})
        ((generator, (self._name, boxes)),) = came.items()
        self._memory.put(f"{self._shared.key} name", self._name)
        self.ask(boxes, self._take_ready)
        return self.to({place: head(KeyKind.KEY) + self._hellos[generator] + box for place, box in boxes.items()})

    def _take_ready(self, place: int, sender: str, message: Message) -> None:
        reader = Reader(message, sender, KeyKind.READY)
        reader.speaks_for(place)
        if reader.take(KEY_ID) != self._name:
            raise UnlikeKeys(sender)
        reader.end()
