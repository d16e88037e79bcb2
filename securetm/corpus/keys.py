"""The key of a document: 64 bits made of its source and its number there, never of its content. No privacy rests on keys.

The mixing step is Steele, Lea and Flood's SplitMix64 (OOPSLA 2014), a bijection: one source never gives a key twice.
"""

from __future__ import annotations

import hashlib

import numpy as np

from securetm.contracts import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def document_keys(source: str, documents: int | Array) -> Array:
    """The keys of documents 0, 1, ... of a source, or of those with the given numbers.

    Anybody who guesses the source's name knows them, and so knows a document's place in public batches, its noise in training
    and whether it is held out. The coins of sampling that amplifies privacy are secret and do not depend on keys.
    """
    numbers = np.arange(documents, dtype=np.uint64) if isinstance(documents, int) else documents.astype(np.uint64)
    start = int.from_bytes(hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    return _scrambled(numbers + np.uint64(start))


def mixed(keys: Array, seed: int) -> Array:
    """Pseudorandom 64-bit numbers, one per key, that depend on key and seed only."""
    salt = hashlib.blake2b(str(int(seed)).encode(), digest_size=8).digest()
    return _scrambled(keys ^ np.uint64(int.from_bytes(salt, "little")))


def _scrambled(numbers: Array) -> Array:
    z = (numbers + np.uint64(1)) * _GOLDEN  # wraps around, as it should
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
