"""The secret key that the parties of an encrypted sum share, as bytes, and the kinds of messages of such a sum.

It draws no key (`seal_library`) and hands none out (`key_setup`).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from securetm.aggregation.homomorphic.homomorphic_errors import BadCiphertext
from securetm.aggregation.homomorphic.parameters import DEGREE
from securetm.contracts import Array
from securetm.sessions.framing import derive
from securetm.sessions.identities import KEY, SIGNATURE
from securetm.sessions.labels import Label
from securetm.sessions.sealing import TAG

SECRET = DEGREE // 4  # bytes: two bits a coefficient
BOX = SECRET + TAG
KEY_ID = 16
HELLO_SIZE = 4 + KEY + SIGNATURE


class SumKind(IntEnum):
    """What a message is. Odd kinds are sent by parties, even kinds by the coordinator. Masked sums have kinds below 21."""

    HELLO = 21
    BUNDLE = 22
    SEALED = 23
    KEY = 24
    READY = 25
    SUM = 26
    FRESH = 27


def pack_secret(ternary: Array) -> bytes:
    """Four coefficients a byte, the lowest bits first; -1, 0, 1 are 0, 1, 2."""
    pairs = (ternary + 1).astype(np.uint8).reshape(-1, 4)
    return (pairs[:, 0] | pairs[:, 1] << 2 | pairs[:, 2] << 4 | pairs[:, 3] << 6).astype(np.uint8).tobytes()


def unpack_secret(packed: bytes, sender: str) -> Array:
    """The secret polynomial, refused if it is none or nothing but zeros."""
    quads = np.frombuffer(packed, dtype=np.uint8)
    ternary = np.stack([quads >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel().astype(np.int64) - 1
    if len(ternary) != DEGREE or (ternary > 1).any() or not ternary.any():
        raise BadCiphertext(sender, "the secret key is no ternary polynomial")
    return ternary


def key_id(packed: bytes) -> bytes:
    """A name that reveals nothing about the key. All parties must encrypt under the same one."""
    return derive(packed, b"", Label.SUM_KEY_NAME)[:KEY_ID]
