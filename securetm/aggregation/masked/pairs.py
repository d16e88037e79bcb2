"""The secrets from which pairs make their masks, one a round, and the copies from which a dropped party's are restored.

Both ends of a pair derive the same secrets. Each leaves a copy with the coordinator, encrypted under its own mask secret of the
round: what opens a dropped party's masks of one round is the same whichever end of a pair it was, and opens no other round.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.aggregation.masked.messages import SHORT, short
from securetm.sessions.framing import Label, derive, framed, place_bytes
from securetm.sessions.identities import KEY
from securetm.sessions.sealing import Pair


def round_secrets(pair: Pair, rounds: int) -> bytes:
    """The secrets of a pair, 32 bytes for each round end to end."""
    return _stream(pair.key(Label.PAIR_ROUNDS), KEY * rounds)


def secret_of(secrets: bytes, index: int) -> bytes:
    """The secret of one round, or its encrypted copy."""
    return secrets[KEY * index : KEY * (index + 1)]


def secret_hashes(setup: bytes, one: int, other: int, secrets: bytes) -> bytes:
    """The hashes of a pair's secrets, end to end. Both ends tell them to the coordinator, and they must be the same."""
    start = framed(Label.PAIR_ROUND, setup, place_bytes(*sorted((one, other))))
    rounds = range(len(secrets) // KEY)
    return b"".join(short(start + index.to_bytes(2, "big") + secret_of(secrets, index)) for index in rounds)


def fits(setup: bytes, one: int, other: int, index: int, secret: bytes, hashes: bytes) -> bool:
    """Whether this is the secret of a round that these hashes are of."""
    start = framed(Label.PAIR_ROUND, setup, place_bytes(*sorted((one, other))))
    return short(start + index.to_bytes(2, "big") + secret) == hashes[SHORT * index : SHORT * (index + 1)]


class Copies:
    """What encrypts the copies of a party's secrets: a keystream for each round under its mask secret, 32 bytes a place."""

    def __init__(self, setup: bytes, owner: int, mask_secrets: dict[int, bytes], parties: int) -> None:
        keys = {
            index: derive(secret, setup, Label.COPY, place_bytes(owner), index.to_bytes(4, "big"))
            for index, secret in mask_secrets.items()
        }
        self._streams = {index: _stream(key, KEY * parties) for index, key in keys.items()}

    def turned(self, partner: int, secrets: bytes) -> bytes:
        """The copies of the secrets with this partner; and of copies, the secrets. They are of these rounds, in order."""
        pad = b"".join(stream[KEY * partner : KEY * (partner + 1)] for stream in self._streams.values())
        return (int.from_bytes(pad, "big") ^ int.from_bytes(secrets, "big")).to_bytes(len(pad), "big")


def _stream(key: bytes, length: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(length))
