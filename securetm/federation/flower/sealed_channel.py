"""A channel between coordinator and party through a relay that both distrust. It carries bytes and reads none of them.

Both ends sign fresh keys, X25519 and ML-KEM-768, with the identity that the roster pins, and seal every message under the
secrets that follow.
The relay (Flower's SuperLink and SuperNode) learns sizes, times and the party's name, and can only drop messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.credentials.hybrid_identity import FORMER, PublicIdentity, Purpose, purposed
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed, Refused
from securetm.sessions.hybrid import CIPHERTEXT, PUBLIC_KEYS, SECRET_KEYS, public_key, public_keys, receive_secret, send_secret
from securetm.sessions.sealing import TAG

VERSION: Final = 2
OFFER, SEALED, REFUSED = 1, 2, 3  # the second byte of a message
KEY, SIGNATURE, DIGEST, NUMBER = 32, 64, 32, 8
LONGEST_OFFER = 2 + DIGEST + PUBLIC_KEYS + SIGNATURE
ANSWERED = KEY + CIPHERTEXT  # an X25519 key, and what the ML-KEM key of the offer opens
LONGEST_ANSWER = 3 + 255 + ANSWERED + SIGNATURE  # a name has at most 255 bytes
OVERHEAD = 2 + NUMBER + TAG  # bytes of a sealed message beside its content
_REQUESTS, _REPLIES = b"securetm channel 2: requests", b"securetm channel 2: replies"


class NotIntroduced(Refused):
    """the message is of no channel that is open"""

    hint = "the coordinator opens a new channel by itself"


class ReplayedMessage(Refused):
    """message {number} of this channel came before"""

    number: int
    hint = "the relay delivered a message twice; the coordinator takes the party for missing, and asks anew"


class OtherRoster(Refused):
    """the two ends of the channel hold different rosters"""

    hint = "compare the digests: `securetm keys show`; accept the roster that all members signed"


class UnprovenName(Refused):
    """what {sender} signed does not fit its key in the roster"""

    sender: str
    hint = "it is another organisation, or the relay changed the message; nothing was sent to it"


@dataclass(frozen=True)
class ChannelKeys:
    """The keys of one channel: one for each direction. A message's number is its nonce, so each seals a number once."""

    requests: bytes = field(repr=False)
    replies: bytes = field(repr=False)

    @classmethod
    def derive(cls, secret: bytes, transcript: bytes) -> ChannelKeys:
        """Derives both keys from the shared secrets and from all that was said before."""
        return cls(*(HKDF(hashes.SHA256(), KEY, transcript, use).derive(secret) for use in (_REQUESTS, _REPLIES)))


def sealed(key: bytes, number: int, content: bytes) -> bytes:
    """Seals the content as the message of that number."""
    counted = number.to_bytes(NUMBER, "big")
    return bytes((VERSION, SEALED)) + counted + ChaCha20Poly1305(key).encrypt(bytes(4) + counted, content, None)


def unsealed(key: bytes, message: bytes, sender: str) -> tuple[int, bytes]:
    """Returns the number and the content of a message, or refuses one that was not sealed under this key."""
    if len(message) < OVERHEAD or message[:2] != bytes((VERSION, SEALED)):
        raise Malformed(sender, "it is no sealed message")
    counted = message[2 : 2 + NUMBER]
    try:
        content = ChaCha20Poly1305(key).decrypt(bytes(4) + counted, message[2 + NUMBER :], None)
    except InvalidTag:
        raise NotIntroduced() from None
    return int.from_bytes(counted, "big"), content


# ---- the coordinator's end ---------------------------------------------------------------------------------------------


@dataclass
class CoordinatorEnd:
    party: str
    keys: ChannelKeys = field(repr=False)
    number: int = 0  # of the last request

    def seal(self, request: bytes) -> bytes:
        """Seals the next request."""
        self.number += 1
        return sealed(self.keys.requests, self.number, request)

    def unseal(self, reply: bytes) -> bytes:
        """Returns the content of the reply to the last request. The reply to an earlier one is refused."""
        number, content = unsealed(self.keys.replies, reply, self.party)
        if number != self.number:
            raise ReplayedMessage(number)
        return content


@dataclass(frozen=True)
class Offer:
    """What the coordinator sends to every node before it knows who is there."""

    secret: bytes = field(repr=False)
    message: bytes

    @classmethod
    def make(cls, identity: bytes, roster: bytes) -> Offer:
        """Signs a fresh key with the coordinator's identity. `roster` is the digest of the roster."""
        secret = OperatingSystem().bytes(SECRET_KEYS)
        stated = bytes((VERSION, OFFER)) + roster + public_keys(secret)
        return cls(secret, stated + _signature(identity, Purpose.OFFER, stated))

    def opened(self, answer: bytes, keys: Mapping[str, bytes]) -> CoordinatorEnd:
        """Opens the channel to the party that signed this answer. The roster's keys say who that is, and nothing else does."""
        length = answer[2] if len(answer) > 2 else 0
        if answer[:2] != bytes((VERSION, OFFER)) or len(answer) != 3 + length + ANSWERED + SIGNATURE:
            raise Malformed("a node", "it answers no offer")
        stated, signature = answer[:-SIGNATURE], answer[-SIGNATURE:]
        name = stated[3 : 3 + length].decode("utf-8", "replace")
        if not PublicIdentity(keys.get(name, b"")).is_signed(signature, Purpose.ANSWER, self.message, stated):
            raise UnprovenName(name)
        secret = receive_secret(self.secret, stated[-ANSWERED:-CIPHERTEXT], stated[-CIPHERTEXT:], name)
        return CoordinatorEnd(name, ChannelKeys.derive(secret, hashlib.sha256(self.message + answer).digest()))


# ---- the party's end ---------------------------------------------------------------------------------------------------


@dataclass
class PartyEnd:
    """The party's end: it opens a channel for nobody but the coordinator of its roster, and reads each number once."""

    name: str
    identity: bytes = field(repr=False)  # the party's own, 32 secret bytes
    coordinator: bytes  # its public identity, as the roster pins it
    roster: bytes  # the digest of the roster
    keys: ChannelKeys | None = field(default=None, repr=False)
    number: int = 0  # of the last request
    opened: Callable[[], None] = lambda: None  # is called when a channel is open

    def handle(self, message: bytes, answer: Callable[[bytes], bytes | memoryview]) -> bytes:
        """Answers an offer or a sealed request. A message that the relay changed or repeats is refused, without effect."""
        try:
            if message[:2] == bytes((VERSION, OFFER)):
                return self.answer(message)
            return self.seal(bytes(answer(self.unseal(message))))
        except Refused as refusal:
            return bytes((VERSION, REFUSED)) + type(refusal).__name__.encode()

    def answer(self, offer: bytes) -> bytes:
        """Opens a new channel in the place of the one before, and returns what the coordinator needs for it."""
        if len(offer) != LONGEST_OFFER:
            raise Malformed("the coordinator", "it is no offer")
        stated, signature = offer[:-SIGNATURE], offer[-SIGNATURE:]
        if not PublicIdentity(self.coordinator).is_signed(signature, Purpose.OFFER, stated):
            raise UnprovenName("the coordinator")
        if stated[2 : 2 + DIGEST] != self.roster:
            raise OtherRoster()
        secret, name = OperatingSystem().bytes(KEY), self.name.encode()
        shared, ciphertext = send_secret(secret, stated[-PUBLIC_KEYS:], "the coordinator")
        mine = bytes((VERSION, OFFER, len(name))) + name + public_key(secret) + ciphertext
        answer = mine + _signature(self.identity, Purpose.ANSWER, offer, mine)
        self.keys, self.number = ChannelKeys.derive(shared, hashlib.sha256(offer + answer).digest()), 0
        self.opened()
        return answer

    def unseal(self, request: bytes) -> bytes:
        """Returns the content of the next request. One that came before is refused."""
        if self.keys is None:
            raise NotIntroduced()
        number, content = unsealed(self.keys.requests, request, "the coordinator")
        if number <= self.number:
            raise ReplayedMessage(number)
        self.number = number
        return content

    def seal(self, reply: bytes) -> bytes:
        if self.keys is None:
            raise NotIntroduced()
        return sealed(self.keys.replies, self.number, reply)


def _signature(identity: bytes, purpose: Purpose, *fields: bytes) -> bytes:
    """By Ed25519 alone: it proves who is there now, and nobody gains by forging it when the channel is gone."""
    return Ed25519PrivateKey.from_private_bytes(identity).sign(purposed(purpose, *fields, protocol=FORMER))


def refusal_in(reply: bytes) -> str:
    """The name of the refusal that a reply is, or nothing. Nobody signed it: it says no more than that the channel is gone."""
    if reply[:2] != bytes((VERSION, REFUSED)):
        return ""
    name = reply[2:66].decode("ascii", "replace")
    if not name.isidentifier():
        raise Malformed("a node", "its refusal has no name")
    return name
