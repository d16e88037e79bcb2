"""The key of a document: 64 bits, its name in every decision about it. A key says nothing about any other document.

It is made of what the document says, under a secret of whoever holds it: the CBC-MAC with AES-128 of two blocks, a digest of
128 bits and the number among equal documents. All messages have two blocks, for which a CBC-MAC is pseudorandom. Without a
secret of the holder's own, the source's name is the secret, which anybody can guess. No guarantee rests on the secret: it keeps
strangers from knowing in which batch, on which side of the split or behind which draws a document is that they guess. The coins
of sampling that amplifies privacy are fresh and do not depend on keys.
"""

from __future__ import annotations

import hashlib

import numpy as np

from securetm.contracts import Array

SECRET = 16  # bytes
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def secret_of(source: str, held: bytes = b"") -> bytes:
    """The secret for the documents of one source, from the holder's secret. Without one it is public."""
    return hashlib.blake2b(_raw(source), key=held, digest_size=SECRET, person=b"names").digest()


def content_keys(secret: bytes, digests: Array, copies: Array) -> Array:
    """The keys of documents: of their digests, a row of 16 bytes each, and their numbers among equal documents."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # most commands read no document

    encryptor = Cipher(algorithms.AES128(secret), modes.ECB()).encryptor()  # noqa: S305 - a MAC's block cipher, block by block

    def encrypted(blocks: Array) -> Array:
        return np.frombuffer(encryptor.update(blocks.tobytes()), "<u8").reshape(-1, 2)

    first = encrypted(np.ascontiguousarray(digests)).astype(np.uint64)
    first[:, 0] ^= copies.astype(np.uint64)
    return encrypted(first.astype("<u8"))[:, 0].astype(np.uint64)


def document_keys(source: str, documents: int | Array) -> Array:
    """Keys of documents 0, 1, ... of a source, or of those with the given numbers, whatever these documents say.

    They name documents whose number is no secret and never changes: a made-up one's in its stream, and one's in its file where
    single words are protected, whose neighbours have equally many documents of equal lengths in the same order.
    """
    numbers = np.arange(documents, dtype=np.uint64) if isinstance(documents, int) else documents.astype(np.uint64)
    start = int.from_bytes(hashlib.blake2b(_raw(source), digest_size=8).digest(), "little")
    return _scrambled(numbers + np.uint64(start))


def mixed(keys: Array, seed: int | str) -> Array:
    """Pseudorandom 64-bit numbers, one per key, that depend on key and seed only; distinct ones for distinct keys."""
    salt = hashlib.blake2b(str(seed if isinstance(seed, str) else int(seed)).encode(), digest_size=8).digest()
    return _scrambled(keys ^ np.uint64(int.from_bytes(salt, "little")))


def uniform(numbers: Array) -> Array:
    """The same numbers as fractions from 0 up to 1."""
    fractions: Array = (numbers >> np.uint64(11)) * 2.0**-53
    return fractions


def _raw(source: str) -> bytes:
    return source.encode("utf-8", "surrogatepass")


def _scrambled(numbers: Array) -> Array:
    """Steele, Lea and Flood's SplitMix64 (OOPSLA 2014), a bijection."""
    z = (numbers + np.uint64(1)) * _GOLDEN  # wraps around, as it should
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
