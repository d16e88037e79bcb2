"""Adds masks, which are AES-256-CTR keystreams, to a vector modulo 2^32 or 2^64, block by block. It derives no keys.

A block of the vector stays in the processor's cache while every stream passes over it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.contracts import Array

BLOCK = 256 * 1024  # bytes of the vector at a time; smaller ones make threads wait for each other
ENOUGH = 8 << 20  # bytes of keystream from which on threads are worth waking
_ZEROS = bytes(BLOCK)
_SPARE = 16  # update_into asks for room for one more cipher block

Mask = tuple[bytes, bool]  # a seed, and whether its stream is added (else subtracted)


def apply_masks(vector: Array, masks: Iterable[Mask]) -> None:
    """Adds or subtracts each seed's stream, in place. `vector` is a contiguous uint32 or uint64 array.

    The cipher and the sum release the interpreter lock, so each core takes a part of a large vector.
    """
    chosen = list(masks)
    cores = os.cpu_count() or 1
    if cores == 1 or vector.nbytes * len(chosen) < ENOUGH:
        _apply(vector, 0, len(vector), chosen)
        return
    blocks = -(-vector.nbytes // BLOCK)
    ends = [min(len(vector), blocks * part // cores * (BLOCK // vector.itemsize)) for part in range(cores)] + [len(vector)]
    for done in [_threads(cores).submit(_apply, vector, start, end, chosen) for start, end in pairwise(ends)]:
        done.result()


@lru_cache(maxsize=1)
def _threads(cores: int) -> ThreadPoolExecutor:
    """Keeps the threads for the next vector: starting them takes as long as masking a short one."""
    return ThreadPoolExecutor(cores, thread_name_prefix="masks")


def _apply(vector: Array, first: int, last: int, masks: Sequence[Mask]) -> None:
    """All streams over one part of the vector, which begins with a whole cipher block."""
    streams = [(_stream(seed, first * vector.itemsize), np.add if plus else np.subtract) for seed, plus in masks]
    drawn = bytearray(BLOCK + _SPARE)
    words = np.frombuffer(drawn, dtype=vector.dtype.newbyteorder("<"), count=BLOCK // vector.itemsize)
    step = len(words)
    for start in range(first, last, step):
        block = vector[start : min(start + step, last)]
        zeros = _ZEROS if len(block) == step else _ZEROS[: block.nbytes]
        mask = words[: len(block)]
        for stream, onto in streams:
            stream.update_into(zeros, drawn)
            onto(block, mask, out=block)


def _stream(seed: bytes, offset: int):  # type: ignore[no-untyped-def]  # cryptography does not name the type of a context
    """The keystream from a byte on that is a multiple of the cipher's block: the counter begins there."""
    return Cipher(algorithms.AES256(seed), modes.CTR((offset // 16).to_bytes(16, "big"))).encryptor()
