"""Ed25519 identities that the roster pins, and signatures that hold in one session and for one purpose only.

It trusts no key that came in a message.
"""

from __future__ import annotations

from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from securetm.contracts import Entropy, Roster, Store
from securetm.data_classes import dataclass
from securetm.errors import Malformed, Mistake, NotInCohort, Refused
from securetm.sessions.framing import Label, framed, hashed


class UnknownIdentity(Refused):
    """no key of {name} is pinned in the roster"""

    name: str
    hint = "every member's public key has to be in the roster that every party holds"


class BadSignature(Refused):
    """the signature of {sender} on its {what} is wrong"""

    sender: str
    what: str


COORDINATOR = "coordinator"  # what the parties call it
IDENTITY = "identity"  # in the party's own store: 32 raw bytes
SIGNATURE = 64
KEY = 32


@dataclass(frozen=True)
class PinnedRoster:
    """A roster as messages use it: places instead of names, and one hash of session, profile, names and keys."""

    roster: Roster

    @cached_property
    def hash(self) -> bytes:
        """The hash that every signature covers. It binds the signature to this session, profile and list of parties."""
        pinned = ((member.encode(), self.roster.keys.get(member, b"")) for member in self.roster.members)
        return hashed(Label.ROSTER, self.roster.session, self.roster.profile, *(part for pair in pinned for part in pair))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {member: place for place, member in enumerate(self.roster.members)}

    def __len__(self) -> int:
        return len(self.roster.members)

    def place(self, name: str) -> int:
        """Returns the place of that name in the roster, or refuses it."""
        if name not in self._places:
            raise NotInCohort(name[:100])
        return self._places[name]

    def name(self, place: int) -> str:
        return self.roster.members[place]

    def key(self, place: int) -> bytes:
        """Returns the pinned public key of the party at that place."""
        key = self.roster.keys.get(self.name(place), b"")
        if len(key) != KEY:
            raise UnknownIdentity(self.name(place))
        return key

    def round_tag(self, round_id: bytes) -> bytes:
        """Returns 32 bytes that name a round of this session, however long its id is."""
        return hashed(Label.ROUND, self.hash, round_id)

    def signed_bytes(self, label: Label, message: bytes, context: bytes) -> bytes:
        return framed(label, self.hash, context, message)

    def verify(self, place: int, label: Label, message: bytes, signature: bytes, context: bytes = b"") -> None:
        """Refuses a message that was not signed for this purpose with the pinned key of the party at that place."""
        key = Ed25519PublicKey.from_public_bytes(self.key(place))
        try:
            key.verify(signature, self.signed_bytes(label, message, context))
        except InvalidSignature:
            raise BadSignature(self.name(place), label.value) from None

    def opened(self, place: int, sender: str, signed: bytes, label: Label, context: bytes = b"") -> bytes:
        """Checks the signature at the end, and returns what was signed."""
        if len(signed) <= SIGNATURE:
            raise Malformed(sender, "it is too short")
        self.verify(place, label, signed[:-SIGNATURE], signed[-SIGNATURE:], context)
        return signed[:-SIGNATURE]


@dataclass(frozen=True)
class Identity:
    """A party's own private key. It signs in one session only."""

    register: PinnedRoster
    me: str
    private: Ed25519PrivateKey

    @property
    def place(self) -> int:
        return self.register.place(self.me)

    def sign(self, label: Label, message: bytes, context: bytes = b"") -> bytes:
        """Returns the message with a signature after it."""
        return message + self.private.sign(self.register.signed_bytes(label, message, context))


def identity_of(me: str, roster: Roster, store: Store) -> Identity:
    """Returns the identity in the party's store. Refuses if its public key is not the one that the roster pins."""
    register, raw = PinnedRoster(roster), store.get(IDENTITY)
    if raw is None or len(raw) != KEY:
        raise _no_identity()
    private = Ed25519PrivateKey.from_private_bytes(raw)
    if private.public_key().public_bytes_raw() != register.key(register.place(me)):
        raise _no_identity()
    return Identity(register, me, private)


def public_identity(store: Store, entropy: Entropy) -> bytes:
    """Returns a party's public key. Run by the party, which makes the key the first time."""
    secret = store.get(IDENTITY)
    if secret is None:
        secret = entropy.bytes(KEY)
        store.put(IDENTITY, secret)
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def _no_identity() -> Mistake:
    return Mistake(
        "this party's own private key is missing, or is not the one whose public key is pinned in the roster",
        hint="put its 32 bytes into the party's store under the name identity",
    )
