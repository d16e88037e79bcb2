"""Bundles of shares, and the hashes that a dealer sends of them, by which a false share is found.

A bundle has two shares for each round: of the dealer's mask key, then of its self-mask seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from securetm.aggregation.masked.masked_errors import UnreadableShares
from securetm.aggregation.masked.messages import SHORT
from securetm.aggregation.masked.shamir import PRIME, SHARE
from securetm.sessions.framing import framed, hashed, place_bytes
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.labels import Label

MASK_KEY, SEED = 0, 1  # which of a round's two shares


def checked(bundle: bytes, dealer: str) -> bytes:
    """The bundle, if its shares are numbers below the prime."""
    if any(int.from_bytes(share, "big") >= PRIME for share in _split(bundle)):
        raise UnreadableShares(dealer)
    return bundle


def _split(bundle: bytes) -> list[bytes]:
    return [bundle[at : at + SHARE] for at in range(0, len(bundle), SHARE)]


def joined(shares: Sequence[int]) -> bytes:
    """A bundle of these shares."""
    return b"".join(share.to_bytes(SHARE, "big") for share in shares)


def share_of(bundle: bytes, index: int, which: int) -> bytes:
    """The share of one round's mask key or self-mask seed."""
    at = (2 * index + which) * SHARE
    return bundle[at : at + SHARE]


def share_hash(setup: bytes, dealer: int, holder: int, number: int, share: bytes) -> bytes:
    """The hash of a share, which its dealer sends to the coordinator."""
    return _short(framed(Label.SHARE, setup, place_bytes(dealer, holder)) + number.to_bytes(2, "big") + share)


def bundle_hashes(setup: bytes, dealer: int, holder: int, bundle: bytes) -> bytes:
    """The hashes of all shares of a bundle, end to end."""
    start = framed(Label.SHARE, setup, place_bytes(dealer, holder))
    return b"".join(_short(start + n.to_bytes(2, "big") + share) for n, share in enumerate(_split(bundle)))


def short_hash(hashes: bytes) -> bytes:
    """One hash for a bundle's hashes: holder and dealer must report the same."""
    return _short(framed(Label.SHARES_HELD, hashes))


def _short(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:SHORT]


def seed_commitment(register: PinnedRoster, owner: int, index: int, seed: bytes) -> bytes:
    """Binds a party to one self-mask seed and reveals nothing about it."""
    return hashed(Label.SEED, register.hash, place_bytes(owner), index.to_bytes(4, "big"), seed)


def seeds_digest(commitments: Sequence[bytes]) -> bytes:
    """One hash for all commitments of a party, so that a reveal stays short."""
    return hashed(Label.SEEDS, *commitments)
