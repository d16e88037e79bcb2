"""The names of columns, which the parties tell each other and not the coordinator: sealed under a key that all of them have.

Names, the bundle of names, agreed. A message is as long whether a party names many columns or none. Every party opens all of
them, and tells the coordinator for which columns there is a name: the same for everybody, or nobody goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from securetm.contracts import Message, Parcel
from securetm.errors import Malformed, Refused
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange
from securetm.sessions.framing import HASH, Label, Reader, derive, head, place_bytes, places_bytes
from securetm.sessions.identities import COORDINATOR, PinnedRoster
from securetm.sessions.sealing import TAG, NotSealedForUs


class NamesDisagree(Refused):
    """{sender} was told other names of columns than the other parties"""

    sender: str


class NameKind(IntEnum):
    """What a message is. Odd kinds are sent by parties, even kinds by the coordinator."""

    NAMES = 31
    BUNDLE = 32
    AGREED = 33


def longest(parties: int, size: int, columns: int) -> tuple[int, int]:
    """The bytes of the longest message from a party and to one, where all names of a party take `size` bytes."""
    up = max(4 + size + TAG, 4 + HASH + -(-columns // 8))
    return up, 4 + parties * (2 + size + TAG)


class NamesPartyExchange(PartyExchange):
    """Run by a party: it tells its names, and hears those of the others.

    `heard` takes what each party told, by its place, and returns a bit for each column, whether it has a name, and a digest
    of all names.
    """

    def __init__(
        self,
        register: PinnedRoster,
        me: int,
        key: bytes,
        exchange: bytes,
        names: bytes,
        heard: Callable[[Mapping[int, bytes]], tuple[bytes, bytes]],
    ) -> None:
        self._register, self._me, self._key, self._exchange, self._size = register, me, key, exchange, len(names)
        self._heard = heard
        super().__init__(head(NameKind.NAMES, me) + self._lock(me).encrypt(bytes(12), names, None))
        self.answers = {NameKind.BUNDLE: self._open}

    def _open(self, message: bytes) -> bytes:
        reader = Reader(message, COORDINATOR, NameKind.BUNDLE)
        places = reader.places(len(self._register))
        sealed = reader.entries(places, self._size + TAG)
        reader.end()
        if self._me not in sealed:
            raise Malformed(COORDINATOR, "the bundle lacks this party")
        told = {}
        for place, box in sealed.items():
            try:
                told[place] = self._lock(place).decrypt(bytes(12), box, None)
            except InvalidTag:
                raise NotSealedForUs(self._register.name(place)) from None
        named, whole = self._heard(told)
        self.answers = {}
        return head(NameKind.AGREED, self._me) + derive(self._key, self._register.hash, Label.WORD_NAMES, whole) + named

    def _lock(self, place: int) -> ChaCha20Poly1305:
        """Each key seals one message, so its nonce may be constant: what is told follows from what the exchange is about."""
        return ChaCha20Poly1305(derive(self._key, self._register.hash, Label.WORD_NAMES, self._exchange, place_bytes(place)))


class NamesCoordinatorExchange(CoordinatorExchange):
    """Run by the coordinator, which then knows for which columns there is a name (`named`, a bit each)."""

    named: bytes = b""

    def __init__(self, register: PinnedRoster, size: int, columns: int) -> None:
        super().__init__(register)
        self._size, self._columns, self._agreed = size, columns, b""
        self.ask(range(len(register)), self._take_names, self._hand_out, need=1)

    def _take_names(self, place: int, sender: str, message: Message) -> bytes:
        reader = Reader(message, sender, NameKind.NAMES)
        reader.speaks_for(place)
        sealed = reader.take(self._size + TAG)
        reader.end()
        return sealed

    def _hand_out(self, came: Mapping[int, bytes]) -> Sequence[Parcel]:
        self.ask(came, self._take_agreed, need=1)
        bundle = head(NameKind.BUNDLE) + places_bytes(tuple(came)) + b"".join(came.values())
        return self.to(dict.fromkeys(came, bundle))

    def _take_agreed(self, place: int, sender: str, message: Message) -> None:
        reader = Reader(message, sender, NameKind.AGREED)
        reader.speaks_for(place)
        said = reader.take(HASH + -(-self._columns // 8))
        reader.end()
        if self._agreed and said != self._agreed:
            raise NamesDisagree(sender)
        self._agreed, self.named = said, said[HASH:]


def digest_of_names(names: Sequence[str]) -> bytes:
    """The digest of all names, each after its length."""
    whole = hashlib.sha256()
    for name in names:
        content = name.encode()
        whole.update(len(content).to_bytes(4, "big") + content)
    return whole.digest()
