"""Bytes of the operating system, few or stretched: never twice the same, of the length asked for, and without a pattern."""

from __future__ import annotations

import os

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from securetm import entropy
from securetm.entropy import MANY, OperatingSystem, Seeded, half_words, words
from securetm.errors import BadSetting

pytestmark = pytest.mark.own_draws
LENGTHS = [0, 1, MANY - 1, MANY, MANY + 1, 100_000, 1 << 17, (1 << 17) + 1, 300_001]


@pytest.mark.parametrize("n", LENGTHS)
def test_as_many_as_asked_for_and_never_again(n: int) -> None:
    one, two = (OperatingSystem().bytes(n) for _ in range(2))
    assert type(one) is bytes
    assert len(one) == n
    assert n < 16 or one != two


@pytest.mark.parametrize("n", LENGTHS)
def test_every_key_is_the_operating_system_s_and_used_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bytes are its own; many are the whole keystream under 32 of its bytes, other ones for each call."""
    given: list[bytes] = []
    real = os.urandom
    monkeypatch.setattr(entropy.os, "urandom", lambda size: (given.append(real(size)), given[-1])[1])
    source = OperatingSystem()
    drawn = [source.bytes(n) for _ in range(3)]
    assert [len(key) for key in given] == [n if n < MANY else 32] * 3
    assert drawn == [key if n < MANY else keystream(key, n) for key in given]
    assert vars(source) == {}


def keystream(key: bytes, n: int) -> bytes:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(n))


def test_many_bytes_have_no_pattern() -> None:
    """All bytes are alike, and so are the bytes at each place of a cipher block; pieces do not repeat one another.

    Seventeen tests at 1e-12 each; one byte in 256 that comes 30 % too often has a p below 1e-30 among 2^20 bytes.
    """
    drawn = np.frombuffer(OperatingSystem().bytes(1 << 20), dtype=np.uint8)
    for part in [drawn, *drawn.reshape(-1, 16).T]:
        assert stats.chisquare(np.bincount(part, minlength=256)).pvalue > 1e-12
    assert len(np.unique(drawn.view("<u8"))) == len(drawn) // 8


def test_words_are_the_bytes_in_little_endian() -> None:
    class Counting:
        def bytes(self, n: int) -> bytes:
            return bytes(range(n))

    assert words(Counting(), 2).tolist() == [0x0706050403020100, 0x0F0E0D0C0B0A0908]
    assert half_words(Counting(), 2).tolist() == [0x03020100, 0x07060504]


def test_seeded_randomness_is_spelled_out() -> None:
    with pytest.raises(BadSetting, match="unsafe"):
        Seeded(bytes(32))
