"""What long-lived identities sign outside sessions: one label for each purpose. Sessions have labels of their own.

A label stands before the fields, so that a signature for one purpose is accepted for no other.
"""

from __future__ import annotations

import hashlib
from enum import Enum

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PROTOCOL = b"securetm credentials 1"  # comes before every label
KEY = 32  # bytes of an Ed25519 key, public or private
SIGNATURE = 64


class Purpose(Enum):
    """The purpose of a signature or a hash. The text is in the bytes."""

    ROSTER = "roster"  # the digest of a roster
    CONSENT = "consent to a roster"  # a member's signature of it
    REQUEST = "request for a place in a roster"
    SUCCESSOR = "new identity of a member"  # the old identity's signature of the new one
    HELLO = "hello of a party"  # the first message of a connection
    WELCOME = "welcome of a coordinator"
    OFFER = "offer of a channel through a relay"  # the coordinator's key
    REPORT = "report on a run"  # the digest of a page, by whoever answers for the data
    ANSWER = "answer to an offer of a channel"  # the party's key


def purposed(purpose: Purpose, *fields: bytes) -> bytes:
    """The bytes that are signed or hashed: protocol, label and fields, each after its length in four bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in (PROTOCOL, purpose.value.encode(), *fields))


def digest_for(purpose: Purpose, *fields: bytes) -> bytes:
    """The SHA-256 of these fields for one purpose."""
    return hashlib.sha256(purposed(purpose, *fields)).digest()


def is_signed(identity: bytes, signature: bytes, purpose: Purpose, *fields: bytes) -> bool:
    """Whether that public identity signed these fields for this purpose."""
    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, purposed(purpose, *fields))
    except (InvalidSignature, ValueError):
        return False
    return True
