"""Masks are the keystream that the standard defines, cancel, and depend on every field they are bound to."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.aggregation.masked.mask_stream import BLOCK, apply_masks
from securetm.aggregation.masked.messages import Place
from securetm.aggregation.masked.round import pair_seed, self_seed


@pytest.mark.parametrize("ring", [np.uint32, np.uint64])
@pytest.mark.parametrize("length", [1, 7, BLOCK // 4, BLOCK // 4 + 1, 3 * BLOCK // 4 - 5])
def test_masks_are_one_keystream_from_its_start_whatever_the_length(ring: type, length: int) -> None:
    seeds, vector = [bytes([n]) * 32 for n in range(3)], np.arange(length).astype(ring)
    expected = vector.copy()
    for seed, sign in zip(seeds, (1, -1, 1), strict=True):
        whole = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update(bytes(expected.nbytes))
        stream = np.frombuffer(whole, dtype=np.dtype(ring).newbyteorder("<"))
        expected = expected + stream if sign == 1 else expected - stream
    apply_masks(vector, [(seed, plus) for seed, plus in zip(seeds, (True, False, True), strict=True)])
    assert np.array_equal(vector, expected)


def test_a_seed_is_bound_to_set_up_round_prekey_and_pair() -> None:
    at = Place(b"e" * 32, b"t" * 32, 3)
    others = [Place(b"f" * 32, b"t" * 32, 3), Place(b"e" * 32, b"u" * 32, 3), Place(b"e" * 32, b"t" * 32, 4)]
    seeds = [pair_seed(b"s" * 32, place, 1, 2) for place in (at, *others)]
    seeds += [pair_seed(b"s" * 32, at, 1, 3), pair_seed(b"r" * 32, at, 1, 2), self_seed(b"s" * 32, at, 1, bytes(16))]
    seeds += [self_seed(b"s" * 32, at, 1, b"n" * 16), self_seed(b"s" * 32, at, 2, bytes(16))]
    assert len(set(seeds)) == len(seeds)
    assert pair_seed(b"s" * 32, at, 1, 2) == pair_seed(b"s" * 32, at, 2, 1)


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_how_many_cores_share_the_work_does_not_change_a_byte(cores: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.aggregation.masked.mask_stream.ENOUGH", 0)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    shared, alone = np.zeros(300_001, kind), np.zeros(300_001, kind)
    masks = [(bytes([n]) * 32, n % 2 == 0) for n in range(3)]
    apply_masks(shared, masks)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    apply_masks(alone, masks)
    assert np.array_equal(shared, alone)
