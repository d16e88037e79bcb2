"""Bundles of shares on their way from their dealer to a holder, sealed so that the coordinator who carries them sees nothing.

A bundle has two shares for each round: of the dealer's mask key, then of its self-mask seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from securetm.aggregation.masked.mask_stream import derive
from securetm.aggregation.masked.masked_errors import UnreadableShares
from securetm.aggregation.masked.messages import SHORT
from securetm.aggregation.masked.shamir import PRIME, SHARE
from securetm.sessions.identities import hashed, named
from securetm.sessions.session_errors import BadKey

MASK_KEY, SEED = 0, 1  # which of a round's two shares


def public_key(private: bytes) -> bytes:
    """The X25519 public key of 32 secret bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def shared_secret(private: bytes, public: bytes, owner: str) -> bytes:
    """What only the two owners of these keys know; a key that gives everybody the same secret is refused."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise BadKey(owner) from None


def seal(private: bytes, public: bytes, setup: bytes, dealer: int, holder: int, bundle: bytes, owner: str) -> bytes:
    """Run by the dealer: the bundle under a key that is used for this one message."""
    key, nonce = _sealing(private, public, setup, dealer, holder, owner)
    return ChaCha20Poly1305(key).encrypt(nonce, bundle, setup)


def unseal(private: bytes, public: bytes, setup: bytes, dealer: int, holder: int, sealed: bytes, owner: str) -> bytes:
    """Run by the holder: the bundle, if the dealer sealed it in this set-up for this holder and its shares are numbers."""
    key, nonce = _sealing(private, public, setup, dealer, holder, owner)
    try:
        bundle = ChaCha20Poly1305(key).decrypt(nonce, sealed, setup)
    except InvalidTag:
        raise UnreadableShares(owner) from None
    if any(int.from_bytes(share, "big") >= PRIME for share in split(bundle)):
        raise UnreadableShares(owner)
    return bundle


def _sealing(private: bytes, public: bytes, setup: bytes, dealer: int, holder: int, owner: str) -> tuple[bytes, bytes]:
    pair = dealer.to_bytes(2, "big") + holder.to_bytes(2, "big")
    secret = shared_secret(private, public, owner)
    return derive(secret, setup, named(b"shares") + pair), pair.ljust(12, b"\0")


def split(bundle: bytes) -> list[bytes]:
    """The single shares of a bundle."""
    return [bundle[at : at + SHARE] for at in range(0, len(bundle), SHARE)]


def joined(shares: Sequence[int]) -> bytes:
    """A bundle of these shares."""
    return b"".join(share.to_bytes(SHARE, "big") for share in shares)


def share_of(bundle: bytes, index: int, which: int) -> bytes:
    """The share of one round's mask key or self-mask seed."""
    at = (2 * index + which) * SHARE
    return bundle[at : at + SHARE]


def share_hash(setup: bytes, dealer: int, holder: int, number: int, share: bytes) -> bytes:
    """What a dealer tells the coordinator of a share, so that a false one can be told from a true one later."""
    where = dealer.to_bytes(2, "big") + holder.to_bytes(2, "big") + number.to_bytes(2, "big")
    return hashlib.sha256(setup + where + share).digest()[:SHORT]


def bundle_hashes(setup: bytes, dealer: int, holder: int, bundle: bytes) -> bytes:
    """The hashes of a bundle's shares, end to end."""
    return b"".join(share_hash(setup, dealer, holder, n, share) for n, share in enumerate(split(bundle)))


def short_hash(hashes: bytes) -> bytes:
    """One hash for a whole list of them: holder and dealer must mean the same bundle."""
    return hashlib.sha256(hashes).digest()[:SHORT]


def seed_commitment(register_hash: bytes, owner: int, index: int, seed: bytes) -> bytes:
    """What binds a party to one self-mask seed and tells nothing of it."""
    return hashed("seed", register_hash, owner.to_bytes(2, "big"), index.to_bytes(4, "big"), seed)


def seeds_digest(commitments: Sequence[bytes]) -> bytes:
    """One hash for all commitments of a party, so that a reveal stays short."""
    return hashed("seeds", *commitments)
