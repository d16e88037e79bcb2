"""Privacy-critical randomness from the operating system. It is not the model's rng, which may be seeded.

It gives bytes and whole numbers; each mechanism draws its own noise from them.
"""

from __future__ import annotations

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.contracts import Array, Entropy
from securetm.errors import BadSetting

MANY = 4096  # so many bytes or more are the keystream of a cipher
_ZEROS = bytes(1 << 17)


class OperatingSystem:
    """Randomness that nobody can repeat.

    Many bytes at once are the keystream of AES-256-CTR under 32 fresh bytes of the operating system, which are used for this
    call alone and stored nowhere. Operating systems extend few random bytes in the same way. Whoever can tell this stream from
    random bytes has broken the cipher that masks rely on, too.
    """

    def bytes(self, n: int) -> bytes:
        """The next n random bytes."""
        return os.urandom(n) if n < MANY else _stretched(os.urandom(32), n)


def _stretched(key: bytes, n: int) -> bytes:
    stream, zeros = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor(), memoryview(_ZEROS)
    return b"".join(stream.update(zeros[: n - start]) for start in range(0, n, len(zeros)))


class Expanded:
    """The keystream of AES-256-CTR under 32 fresh random bytes, for what may be revealed later by telling these.

    Until then whoever can tell it from random bytes has broken the cipher that masks rely on, too.
    """

    def __init__(self, seed: bytes) -> None:
        self._stream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor()

    def bytes(self, n: int) -> bytes:
        """The next n bytes of the stream."""
        return self._stream.update(bytes(n))


class Seeded(Expanded):
    """A repeatable stream for test vectors only: AES-256-CTR under the given key. It voids every privacy claim."""

    def __init__(self, key: bytes, *, unsafe: bool = False) -> None:
        if not unsafe:
            instead = "use OperatingSystem(); for test vectors write Seeded(key, unsafe=True)"
            problem = "must be True, because seeded randomness voids every privacy claim"
            raise BadSetting("Seeded", "unsafe", "False", problem, instead=instead)
        if len(key) != 32:
            raise BadSetting("Seeded", "key", f"{len(key)} bytes", "must have 32 bytes")
        super().__init__(key)


def half_words(entropy: Entropy, n: int) -> Array:
    """n uniform 32-bit integers."""
    return np.frombuffer(entropy.bytes(4 * n), dtype="<u4")


def words(entropy: Entropy, n: int) -> Array:
    """n uniform 64-bit integers."""
    return np.frombuffer(entropy.bytes(8 * n), dtype="<u8")
