"""Masks: AES-256-CTR keystreams added to a vector modulo 2^32 or 2^64, block by block. It derives no key from a person.

A block of the vector stays in the processor's cache while every stream passes over it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.contracts import Array

BLOCK = 128 * 1024  # bytes of the vector at a time
_ZEROS = bytes(BLOCK)
_SPARE = 16  # update_into asks for room for one more cipher block

Mask = tuple[bytes, bool]  # a seed, and whether its stream is added (else subtracted)


def derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """A 32-byte key for one purpose only, which `info` names (HKDF-SHA256)."""
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def apply_masks(vector: Array, masks: Iterable[Mask]) -> None:
    """Adds or subtracts each seed's stream, in place. `vector` is a contiguous uint32 or uint64 array."""
    streams = [(_stream(seed), np.add if plus else np.subtract) for seed, plus in masks]
    drawn = bytearray(BLOCK + _SPARE)
    words = np.frombuffer(drawn, dtype=vector.dtype.newbyteorder("<"), count=BLOCK // vector.itemsize)
    step = len(words)
    for start in range(0, len(vector), step):
        block = vector[start : start + step]
        zeros = _ZEROS if len(block) == step else _ZEROS[: block.nbytes]
        mask = words[: len(block)]
        for stream, onto in streams:
            stream.update_into(zeros, drawn)
            onto(block, mask, out=block)


def _stream(seed: bytes):  # type: ignore[no-untyped-def]  # cryptography does not name the type of a context
    return Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor()
