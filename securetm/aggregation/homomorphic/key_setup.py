"""The secret key that the parties of an encrypted sum share: how it is drawn, packed and named."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from securetm.aggregation.homomorphic.parameters import DEGREE
from securetm.aggregation.homomorphic.seal_library import draw_ternary
from securetm.contracts import Array, Entropy
from securetm.errors import Refused
from securetm.sessions.framing import Label
from securetm.sessions.group_key import SharedSecret


class BadCiphertext(Refused):
    """the ciphertexts from {sender} are refused: {problem}"""

    sender: str
    problem: str


SECRET = DEGREE // 4  # bytes: two bits a coefficient


class SumKind(IntEnum):
    """What a message of a round is. Odd kinds are sent by parties, even kinds by the coordinator."""

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


def _drawn(entropy: Entropy) -> bytes:
    return pack_secret(draw_ternary(entropy))


def sum_key(code: str) -> SharedSecret:
    """The key of sums in this code."""
    return SharedSecret(
        SECRET,
        _drawn,
        unpack_secret,
        hello=Label.KEY_HELLO,
        seal=Label.SUM_KEY_SEAL,
        name=Label.SUM_KEY_NAME,
        about=code.encode(),
    )
