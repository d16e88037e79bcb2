"""What two parties of a set-up know alone, and what they seal with it: the coordinator carries it and cannot read it.

X25519 and ML-KEM-768, HKDF-SHA256, ChaCha20-Poly1305.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from securetm.data_classes import dataclass, field
from securetm.errors import Refused
from securetm.sessions.framing import Label, derive, place_bytes
from securetm.sessions.identities import PinnedRoster


class NotSealedForUs(Refused):
    """what {sender} sealed for this party cannot be opened"""

    sender: str


TAG = 16  # bytes that sealing adds to a message
End = tuple[int, bytes]  # place, and the public keys for this set-up


@dataclass(frozen=True)
class Pair:
    """Two ends and their secret, bound to session, context, both places, all public keys and the ciphertext."""

    roster: PinnedRoster
    root: bytes = field(repr=False)

    @classmethod
    def of(cls, roster: PinnedRoster, context: bytes, ends: tuple[End, End], secrets: bytes, ciphertext: bytes) -> Pair:
        """The pair of two ends that share these X25519 and ML-KEM secrets. The first end made the ciphertext.

        `context` says which part of the session they share them in.
        """
        (first, own), (second, theirs) = ends
        said = (context, place_bytes(first, second), own, theirs, ciphertext)
        return cls(roster, derive(secrets, roster.hash, Label.PAIR, *said))

    def within(self, setup: bytes) -> Pair:
        return Pair(self.roster, self.key(Label.PAIR_SETUP, setup))

    def key(self, label: Label, *fields: bytes) -> bytes:
        return derive(self.root, self.roster.hash, label, *fields)

    def seal(self, label: Label, sender: int, recipient: int, content: bytes) -> bytes:
        """Encrypts the content. Each key seals one message, so that its nonce may be constant."""
        return self._lock(label, sender, recipient).encrypt(bytes(12), content, None)

    def unseal(self, label: Label, sender: int, recipient: int, sealed: bytes) -> bytes:
        """Decrypts a message, or refuses it."""
        try:
            return self._lock(label, sender, recipient).decrypt(bytes(12), sealed, None)
        except InvalidTag:
            raise NotSealedForUs(self.roster.name(sender)) from None

    def _lock(self, label: Label, sender: int, recipient: int) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(self.key(label, place_bytes(sender, recipient)))
