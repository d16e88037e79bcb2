"""Who speaks: Ed25519 identities pinned in the roster, and signatures that hold in one session and profile only.

It trusts no key that came in a message.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from securetm.contracts import Entropy, Roster, Store
from securetm.errors import Malformed, NotInCohort
from securetm.sessions.session_errors import BadSignature, NoIdentity, UnknownIdentity

PROTOCOL = b"securetm masked_sum 2"
SIGNATURE = 64
IDENTITY = "identity"  # in the party's own store: 32 raw bytes
KEY = 32


def named(part: bytes) -> bytes:
    """A field of any length, so that no two lists of fields have the same bytes."""
    return len(part).to_bytes(4, "big") + part


def hashed(what: str, *parts: bytes) -> bytes:
    """SHA-256 of these fields, for one purpose in this protocol."""
    return hashlib.sha256(b"".join(map(named, (PROTOCOL, what.encode(), *parts)))).digest()


@dataclass(frozen=True)
class PinnedRoster:
    """A roster as signatures see it: places instead of names, and one hash of session, profile, names and keys."""

    roster: Roster

    @cached_property
    def hash(self) -> bytes:
        """What every signature binds, so that it holds in this session, under this profile, among these people."""
        keys = [self.roster.keys.get(member, b"") for member in self.roster.members]
        names = [part for member, key in zip(self.roster.members, keys, strict=True) for part in (member.encode(), key)]
        return hashed("roster", self.roster.session, self.roster.profile, *names)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {member: place for place, member in enumerate(self.roster.members)}

    def __len__(self) -> int:
        return len(self.roster.members)

    def place(self, name: str) -> int:
        """Where that name stands in the roster, or a refusal."""
        if name not in self._places:
            raise NotInCohort(name[:100])
        return self._places[name]

    def name(self, place: int) -> str:
        """Who stands there."""
        return self.roster.members[place]

    def key(self, place: int) -> bytes:
        """The pinned public key of who stands there."""
        key = self.roster.keys.get(self.name(place), b"")
        if len(key) != KEY:
            raise UnknownIdentity(self.name(place))
        return key

    def signed_bytes(self, message: bytes, context: bytes) -> bytes:
        """What is really signed: the roster and the context stand before the message."""
        return b"".join(map(named, (PROTOCOL, self.hash, context))) + message

    def verify(self, place: int, message: bytes, signature: bytes, context: bytes, what: str) -> None:
        """Refuses a message that was not signed with the pinned key of who stands there."""
        key = Ed25519PublicKey.from_public_bytes(self.key(place))
        try:
            key.verify(signature, self.signed_bytes(message, context))
        except InvalidSignature:
            raise BadSignature(self.name(place), what) from None


@dataclass(frozen=True)
class Identity:
    """A party's own private key. It signs in one session only."""

    register: PinnedRoster
    me: str
    private: Ed25519PrivateKey

    @property
    def place(self) -> int:
        """Where this party stands in the roster."""
        return self.register.place(self.me)

    def sign(self, message: bytes, context: bytes = b"") -> bytes:
        """The message with a signature behind it."""
        return message + self.private.sign(self.register.signed_bytes(message, context))


def identity_of(me: str, roster: Roster, store: Store) -> Identity:
    """The identity in the party's store, if its public key is the one that the roster pins."""
    register, raw = PinnedRoster(roster), store.get(IDENTITY)
    if raw is None or len(raw) != KEY:
        raise NoIdentity()
    private = Ed25519PrivateKey.from_private_bytes(raw)
    if private.public_key().public_bytes_raw() != register.key(register.place(me)):
        raise NoIdentity()
    return Identity(register, me, private)


def public_identity(store: Store, entropy: Entropy) -> bytes:
    """Run by a party: its public key, made the first time it is asked for."""
    secret = store.get(IDENTITY)
    if secret is None:
        secret = entropy.bytes(KEY)
        store.put(IDENTITY, secret)
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def signed_parts(message: bytes, sender: str) -> tuple[bytes, bytes]:
    """What was signed, and the signature at the end."""
    if len(message) <= SIGNATURE:
        raise Malformed(sender, "it is too short")
    return message[:-SIGNATURE], message[-SIGNATURE:]
