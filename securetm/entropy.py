"""Where privacy-critical randomness comes from: the operating system. It is not the model's rng, which may be seeded.

It gives whole bytes and words; what is drawn from them is the business of each mechanism.
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
