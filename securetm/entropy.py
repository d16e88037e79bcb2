"""Where privacy-critical randomness comes from: the operating system. It is not the model's rng, which may be seeded.

Samplers here are exact: every value is drawn by comparing whole integers, never by rounding a float.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.contracts import Array, Entropy
from securetm.errors import BadSetting, UnsafeEntropy


class OperatingSystem:
    """Randomness that nobody can repeat."""

    def bytes(self, n: int) -> bytes:
        """The next n random bytes."""
        return os.urandom(n)


class Seeded:
    """A repeatable stream for test vectors only: AES-256-CTR under the given key. It voids every privacy claim."""

    def __init__(self, key: bytes, *, unsafe: bool = False) -> None:
        if not unsafe:
            raise UnsafeEntropy()
        if len(key) != 32:
            raise BadSetting("Seeded", "key", f"{len(key)} bytes", "must have 32 bytes")
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def bytes(self, n: int) -> bytes:
        """The next n bytes of the repeatable stream."""
        return self._stream.update(bytes(n))


def words(entropy: Entropy, n: int) -> Array:
    """n uniform 64-bit integers."""
    return np.frombuffer(entropy.bytes(8 * n), dtype="<u8")


def coins(entropy: Entropy, n: int, numerator: int, denominator: int) -> Array:
    """n exact independent coins, each true with probability numerator / denominator."""
    if not 0 <= numerator <= denominator or denominator >= 2**63:
        raise BadSetting("coins", "probability", f"{numerator}/{denominator}", "must lie between 0 and 1")
    return below(entropy, n, denominator) < np.uint64(numerator)


def below(entropy: Entropy, n: int, limit: int) -> Array:
    """n exact uniform integers in 0 .. limit - 1, by rejection."""
    if not 0 < limit < 2**63:
        raise BadSetting("below", "limit", str(limit), "must be positive and below 2^63")
    last = np.uint64((2**64 // limit) * limit - 1)
    drawn = words(entropy, n)
    while (rejected := np.flatnonzero(drawn > last)).size:
        drawn = drawn.copy()
        drawn[rejected] = words(entropy, rejected.size)
    return drawn % np.uint64(limit)
