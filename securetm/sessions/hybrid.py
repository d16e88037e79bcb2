"""Secrets that hold as long as X25519 or ML-KEM-768 does: against whoever records today and has a quantum computer later.

One end encapsulates to the other's ML-KEM key, and both exchange X25519 keys. One HKDF takes both secrets and what is public.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from securetm.errors import Refused

KEY = 32  # of X25519, private or public
KEM_SECRET = 64  # the seed of an ML-KEM-768 private key
KEM_KEY, CIPHERTEXT = 1_184, 1_088
SECRET_KEYS, PUBLIC_KEYS = KEY + KEM_SECRET, KEY + KEM_KEY  # of both kinds, X25519 first


_ANY = bytes(range(KEY))  # a private key of nobody


class BadKey(Refused):
    """{sender} sent a public key that no honest party makes"""

    sender: str


def public_keys(secret: bytes) -> bytes:
    """Returns the public keys of 96 secret bytes: X25519, then ML-KEM-768."""
    return public_key(secret[:KEY]) + MLKEM768PrivateKey.from_seed_bytes(secret[KEY:]).public_key().public_bytes_raw()


def check_public_keys(public: bytes, owner: str) -> None:
    """Refuses public keys with which nobody can agree on a secret."""
    try:
        MLKEM768PublicKey.from_public_bytes(public[KEY:])
    except ValueError:
        raise BadKey(owner) from None
    shared_secret(_ANY, public[:KEY], owner)


def public_key(private: bytes) -> bytes:
    """Returns the X25519 public key of 32 secret bytes."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def shared_secret(private: bytes, public: bytes, owner: str) -> bytes:
    """Returns the X25519 secret of these two keys. Refuses a key that gives everybody the same secret."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise BadKey(owner) from None


def encapsulate(public: bytes, owner: str) -> tuple[bytes, bytes]:
    """Returns a fresh secret and the ciphertext that tells it to the owner of this ML-KEM-768 key."""
    try:
        key = MLKEM768PublicKey.from_public_bytes(public)
    except ValueError:
        raise BadKey(owner) from None
    return draw_for(key)


def draw_for(key: MLKEM768PublicKey) -> tuple[bytes, bytes]:
    """Draws a secret and its ciphertext. The library takes its randomness from the operating system."""
    return key.encapsulate()


def decapsulate(private: bytes, ciphertext: bytes) -> bytes:
    """Returns the secret in a ciphertext of 1,088 bytes. One made for another key gives a secret that nobody else has."""
    return MLKEM768PrivateKey.from_seed_bytes(private).decapsulate(ciphertext)


def send_secret(own: bytes, theirs: bytes, owner: str) -> tuple[bytes, bytes]:
    """Returns both secrets of two ends, end to end, and the ciphertext for the other. Run by the end that speaks first."""
    told, ciphertext = encapsulate(theirs[KEY:], owner)
    return shared_secret(own[:KEY], theirs[:KEY], owner) + told, ciphertext


def receive_secret(own: bytes, theirs: bytes, ciphertext: bytes, owner: str) -> bytes:
    """Returns the same secrets at the other end. `theirs` begins with the X25519 key of the end that encapsulated."""
    return shared_secret(own[:KEY], theirs[:KEY], owner) + decapsulate(own[KEY:], ciphertext)
