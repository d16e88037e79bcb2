"""The messages of a masked sum as bytes and back. It checks form and size before it makes anything, never the meaning.

Lists stand in the order of the roster. The framing is that of all sessions (`securetm/sessions/framing.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from enum import IntEnum

import numpy as np

from securetm.aggregation.masked.refusals import UnreadableShares, WrongSetup
from securetm.aggregation.masked.shamir import PRIME, SHARE
from securetm.contracts import Message, Terms
from securetm.data_classes import dataclass
from securetm.errors import UnknownRound
from securetm.sessions.framing import HASH, VERSION, Label, Reader, framed, hashed, head, place_bytes, places_bytes
from securetm.sessions.hybrid import CIPHERTEXT, PUBLIC_KEYS
from securetm.sessions.identities import KEY, SIGNATURE, PinnedRoster
from securetm.sessions.sealing import TAG

SALT = 16
SHORT = 16  # bytes of a share's hash: enough where nobody gains by a collision, because a share is what its dealer sent
MOST_ROUNDS = 1024
MOST_PARTIES = 4096


class Kind(IntEnum):
    """What a message is. Odd kinds are sent by parties, even kinds by the coordinator. Encrypted sums begin at 21."""

    COMMIT = 1
    COMMITS = 2
    REVEAL = 3
    REVEALS = 4
    SHARES = 5
    DELIVERY = 6
    STORED = 7
    ADVANCE = 8
    MASKED = 9
    SURVIVORS = 10
    HELLO = 11
    UNMASK = 12
    CONSENT = 13
    UNMASKED = 15


# ---- set-up ----------------------------------------------------------------------------------------------------------

COMMIT_SIZE = 4 + HASH + PUBLIC_KEYS + SIGNATURE


def keys_in(commit: bytes) -> bytes:
    """The public keys for this set-up that stand behind a party's commitment."""
    return commit[4 + HASH : 4 + HASH + PUBLIC_KEYS]


@dataclass(frozen=True)
class Reveal:
    """What a party reveals after all have committed to a number."""

    place: int
    nonce: bytes
    rounds: int
    secrets_hash: bytes  # of the commitments to its secrets, which only the coordinator needs

    def body(self) -> bytes:
        """The bytes that are signed."""
        return head(Kind.REVEAL, self.place) + self.nonce + self.rounds.to_bytes(2, "big") + self.secrets_hash


REVEAL_SIZE = 4 + HASH + 2 + HASH + SIGNATURE  # as it is passed on
TOLD = CIPHERTEXT + TAG  # what tells one other party a secret


def read_reveal(reader: Reader, rounds: int) -> Reveal:
    """The body of a reveal with this number of rounds."""
    place, nonce = reader.number(2), reader.take(HASH)
    if reader.number(2) != rounds:
        raise reader.malformed("it prepares another number of rounds")
    return Reveal(place, nonce, rounds, reader.take(HASH))


def bundle_size(rounds: int) -> int:
    """Bytes of one sealed bundle: two shares a round."""
    return 2 * rounds * SHARE + TAG


def longest_in_set_up(parties: int, rounds: int) -> tuple[int, int]:
    """The most bytes of a message from a party, and of one to it: commits, reveals, shares, receipts."""
    dealt = 2 * rounds * SHORT + bundle_size(rounds) + rounds * (SHORT + KEY)  # to one holder, and of one pair
    up = max(REVEAL_SIZE + 2 * rounds * HASH + parties * TOLD, 4 + HASH + parties * dealt + SIGNATURE)
    return up, 4 + HASH + 2 + parties * (2 + max(REVEAL_SIZE + TOLD, COMMIT_SIZE, bundle_size(rounds)))


def read_share(reader: Reader) -> int:
    """One share: a number below the prime."""
    if (found := reader.number(SHARE)) >= PRIME:
        raise reader.malformed("a share is no number below the prime")
    return found


# ---- rounds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Which prekey a message is about, in which set-up and for which round."""

    epoch: bytes
    tag: bytes  # hash of the round id
    index: int

    def body(self) -> bytes:
        return self.epoch + self.tag + self.index.to_bytes(4, "big")

    def check(self, epoch: bytes, tag: bytes) -> None:
        if self.epoch != epoch:
            raise WrongSetup()
        if self.tag != tag:
            raise UnknownRound(self.tag.hex()[:16])


PLACE_SIZE = 2 * HASH + 4
QUESTION_SIZE = 4 + PLACE_SIZE + SIGNATURE
HEADER_SIZE = 4 + PLACE_SIZE + SALT + HASH + SIGNATURE  # of a masked vector; the vector follows


def longest_in_round(parties: int) -> tuple[int, int]:
    """The same without the vector: one share of each party, and two lists of parties with signatures."""
    up = max(HEADER_SIZE, 4 + PLACE_SIZE + parties * SHARE + SIGNATURE)
    return up, max(2 + PLACE_SIZE + HEADER_SIZE, 2 + PLACE_SIZE + 3 * 2 + parties * (2 + 2 + SIGNATURE))


def read_place(reader: Reader) -> Place:
    return Place(reader.take(HASH), reader.take(HASH), reader.number(4))


@dataclass(frozen=True)
class Header:
    """What a party signs when it uses a prekey. Its salt is fresh, so that using one twice shows."""

    sender: int
    at: Place
    salt: bytes
    vector: bytes = b""  # the hash of the masked vector that follows, once there is one: no other fits under the signature

    def body(self) -> bytes:
        """The bytes that are signed."""
        return head(Kind.MASKED, self.sender) + self.at.body() + self.salt + self.vector


def ring_type(terms: Terms) -> np.dtype[np.generic]:
    """The ring in which these terms are summed, and in which masked vectors travel."""
    return np.dtype(np.uint32 if terms.bits == 32 else np.uint64)


def vector_hash(vector: Message) -> bytes:
    """SHA-256 of a masked vector as it travels: processors have instructions for it, so that it costs less than masking."""
    return hashlib.sha256(vector).digest()


def read_header(message: Message, sender: str, versions: Collection[int] = (VERSION,)) -> Header:
    reader = Reader(message, sender, Kind.MASKED, versions=versions)
    return Header(reader.number(2), read_place(reader), reader.take(SALT), reader.take(HASH))


@dataclass(frozen=True)
class Outcome:
    """Who is in the sum and who is not, as a coordinator says it."""

    at: Place
    survivors: tuple[int, ...]
    dropped: tuple[int, ...]

    def body(self, kind: Kind) -> bytes:
        """The bytes on the wire. A party signs those of the kind SURVIVORS."""
        return head(kind) + self.at.body() + places_bytes(self.survivors) + places_bytes(self.dropped)


def read_outcome(reader: Reader, parties: int) -> Outcome:
    """The two lists of a request to sign or to unmask."""
    return Outcome(read_place(reader), reader.places(parties), reader.places(parties))


MASK_SECRET, SEED = 0, 1  # which of a round's two secrets


def checked(bundle: bytes, dealer: str) -> bytes:
    """The bundle, if its shares are numbers below the prime."""
    if any(int.from_bytes(share, "big") >= PRIME for share in _split(bundle)):
        raise UnreadableShares(dealer)
    return bundle


def _split(bundle: bytes) -> list[bytes]:
    return [bundle[at : at + SHARE] for at in range(0, len(bundle), SHARE)]


def joined(shares: Sequence[int]) -> bytes:
    return b"".join(share.to_bytes(SHARE, "big") for share in shares)


def share_of(bundle: bytes, index: int, which: int) -> bytes:
    """The share of one round's mask secret or self-mask seed."""
    at = (2 * index + which) * SHARE
    return bundle[at : at + SHARE]


def share_hash(setup: bytes, dealer: int, holder: int, number: int, share: bytes) -> bytes:
    """The hash of a share, which its dealer sends to the coordinator."""
    return short(framed(Label.SHARE, setup, place_bytes(dealer, holder)) + number.to_bytes(2, "big") + share)


def bundle_hashes(setup: bytes, dealer: int, holder: int, bundle: bytes) -> bytes:
    """The hashes of all shares of a bundle, end to end."""
    start = framed(Label.SHARE, setup, place_bytes(dealer, holder))
    return b"".join(short(start + n.to_bytes(2, "big") + share) for n, share in enumerate(_split(bundle)))


def short_hash(hashes: bytes) -> bytes:
    """One hash for a bundle's hashes: holder and dealer must report the same."""
    return short(framed(Label.SHARES_HELD, hashes))


def short(content: bytes) -> bytes:
    """SHA-256, cut to the length of hashes of shares."""
    return hashlib.sha256(content).digest()[:SHORT]


def secret_commitment(register: PinnedRoster, owner: int, number: int, secret: bytes) -> bytes:
    """Binds a party to one of the secrets that it deals, and reveals nothing about it. They are numbered as their shares."""
    return hashed(Label.DEALT, register.hash, place_bytes(owner), number.to_bytes(4, "big"), secret)


def secrets_digest(commitments: Sequence[bytes]) -> bytes:
    """One hash for all commitments of a party, so that a reveal stays short."""
    return hashed(Label.DEALT_ALL, *commitments)
