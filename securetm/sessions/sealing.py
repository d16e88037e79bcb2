"""Messages from one party to another that the coordinator carries and cannot read: X25519, HKDF-SHA256, ChaCha20-Poly1305."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from securetm.errors import Refused
from securetm.sessions.framing import Label, derive, place_bytes
from securetm.sessions.hybrid import BadKey, shared_secret
from securetm.sessions.identities import PinnedRoster


class NotSealedForUs(Refused):
    """what {sender} sealed for this party cannot be opened"""

    sender: str


TAG = 16  # bytes that sealing adds to a message


def shared_secrets(private: bytes, public: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yields the secrets that the owner of the private key shares with each of these owners of public keys."""
    own = X25519PrivateKey.from_private_bytes(private)
    for owner, key in public.items():
        try:
            yield own.exchange(X25519PublicKey.from_public_bytes(key))
        except ValueError:
            raise BadKey(owner) from None


@dataclass(frozen=True)
class Sealing:
    """One message from one party to another: its key is bound to session, set-up, both places and both public keys.

    Each key seals one message, so that its nonce may be constant.
    """

    roster: PinnedRoster
    label: Label
    setup: bytes  # which set-up or round of the session
    sender: tuple[int, bytes]  # place, and public key for this set-up
    recipient: tuple[int, bytes]

    def seal(self, private: bytes, content: bytes) -> bytes:
        """Encrypts the content. Run by the sender."""
        return self._lock(private, self.recipient).encrypt(bytes(12), content, None)

    def unseal(self, private: bytes, sealed: bytes) -> bytes:
        """Decrypts a message, or refuses it. Run by the recipient."""
        try:
            return self._lock(private, self.sender).decrypt(bytes(12), sealed, None)
        except InvalidTag:
            raise NotSealedForUs(self.roster.name(self.sender[0])) from None

    def _lock(self, private: bytes, peer: tuple[int, bytes]) -> ChaCha20Poly1305:
        secret = shared_secret(private, peer[1], self.roster.name(peer[0]))
        ends = (place_bytes(self.sender[0], self.recipient[0]), self.sender[1], self.recipient[1])
        return ChaCha20Poly1305(derive(secret, self.roster.hash, self.label, self.setup, *ends))
