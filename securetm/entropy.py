"""Where privacy-critical randomness comes from: the operating system. It is not the model's rng, which may be seeded.

It gives whole bytes and words; what is drawn from them is the business of each mechanism.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.contracts import Array, Entropy
from securetm.errors import BadSetting, UnsafeEntropy

MANY = 4096  # bytes from which on a cipher stretches the operating system's
_ZEROS = bytes(1 << 17)


class OperatingSystem:
    """Randomness that nobody can repeat.

    Many bytes at once are the keystream of AES-256-CTR under 32 fresh bytes of the operating system's, which are used for this
    call alone and kept nowhere. Operating systems make many bytes of few in the same way, with a cipher of their own: whoever
    tells this stream from random bytes has broken the one that masks rest on, too.
    """

    def bytes(self, n: int) -> bytes:
        """The next n random bytes."""
        return os.urandom(n) if n < MANY else _stretched(os.urandom(32), n)


def _stretched(key: bytes, n: int) -> bytes:
    stream, zeros = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor(), memoryview(_ZEROS)
    return b"".join(stream.update(zeros[: n - start]) for start in range(0, n, len(zeros)))


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


def half_words(entropy: Entropy, n: int) -> Array:
    """n uniform 32-bit integers."""
    return np.frombuffer(entropy.bytes(4 * n), dtype="<u4")


def words(entropy: Entropy, n: int) -> Array:
    """n uniform 64-bit integers."""
    return np.frombuffer(entropy.bytes(8 * n), dtype="<u8")
