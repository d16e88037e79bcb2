"""Who a party is: an Ed25519 key of its own, whose public half everybody pins. It signs nothing itself: the seats do."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.contracts import Entropy, Store

IDENTITY = "identity"  # in the party's own store: 32 raw bytes


def public_identity(store: Store, entropy: Entropy) -> bytes:
    """Run by a party: its public key, made the first time it is asked for."""
    secret = store.get(IDENTITY)
    if secret is None:
        secret = entropy.bytes(32)
        store.put(IDENTITY, secret)
    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
