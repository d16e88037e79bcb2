"""Masks and shares: keystreams that cancel, copies that open one secret each, and shares of which too few tell nothing."""

from __future__ import annotations

import hashlib
import itertools
import random
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.aggregation.masked.mask_stream import BLOCK, apply_masks
from securetm.aggregation.masked.messages import SHORT, Place, checked, joined
from securetm.aggregation.masked.pairs import Copies, fits, secret_hashes, secret_of
from securetm.aggregation.masked.refusals import UnreadableShares
from securetm.aggregation.masked.round import pair_seed, self_seed
from securetm.aggregation.masked.shamir import PRIME, combine, deal, weights_at_zero
from securetm.entropy import OperatingSystem, Seeded


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


# ---- copies of secrets -----------------------------------------------------------------------------------------------------


SETUP, PARTIES, ROUNDS = b"s" * 32, 4, 3
MASK_SECRETS = {index: hashlib.sha256(bytes([index])).digest() for index in range(ROUNDS)}
SECRETS = hashlib.shake_256(b"pair").digest(32 * ROUNDS)


def pads(setup: bytes = SETUP, owner: int = 1) -> list[bytes]:
    """What encrypts the copies, by partner and round."""
    copies = Copies(setup, owner, MASK_SECRETS, PARTIES)
    return [secret_of(copies.turned(partner, bytes(32 * ROUNDS)), n) for partner in range(PARTIES) for n in range(ROUNDS)]


def test_no_two_copies_have_one_pad() -> None:
    """Of two copies under one pad the difference of two secrets would show."""
    drawn = [*pads(), *pads(owner=2), *pads(setup=b"t" * 32)]
    assert all(one != other for one, other in combinations(drawn, 2))


def test_the_mask_secret_of_a_round_opens_the_copies_of_that_round() -> None:
    turned = Copies(SETUP, 1, MASK_SECRETS, PARTIES).turned(3, SECRETS)
    for secret_round in range(ROUNDS):
        alone = Copies(SETUP, 1, {secret_round: MASK_SECRETS[secret_round]}, PARTIES)
        other = Copies(SETUP, 1, {secret_round: MASK_SECRETS[(secret_round + 1) % ROUNDS]}, PARTIES)
        copy, secret = secret_of(turned, secret_round), secret_of(SECRETS, secret_round)
        assert alone.turned(3, copy) == secret
        assert alone.turned(2, copy) != secret
        assert other.turned(3, copy) != secret


def test_a_secret_fits_its_own_hash_alone() -> None:
    hashes = secret_hashes(SETUP, 3, 1, SECRETS)
    assert hashes == secret_hashes(SETUP, 1, 3, SECRETS)
    assert len(hashes) == SHORT * ROUNDS
    for index in range(ROUNDS):
        for other in range(ROUNDS):
            assert fits(SETUP, 1, 3, index, secret_of(SECRETS, other), hashes) == (index == other)
    assert not fits(SETUP, 1, 2, 0, secret_of(SECRETS, 0), hashes)
    assert not fits(b"t" * 32, 1, 3, 0, secret_of(SECRETS, 0), hashes)


# ---- shares ----------------------------------------------------------------------------------------------------------------


def fixed(key: int) -> Seeded:
    return Seeded(bytes([key]) * 32, unsafe=True)


def is_prime(n: int) -> bool:
    """Miller and Rabin with forty fixed bases."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1

    def witness(base: int) -> bool:
        value = pow(base, odd, n)
        return value not in (1, n - 1) and all((value := value * value % n) != n - 1 for _ in range(twos - 1))

    return not any(witness(base) for base in range(2, 42))


def test_the_prime_is_prime_and_the_first_above_all_secrets_of_32_bytes() -> None:
    assert is_prime(PRIME)
    assert not any(is_prime(n) for n in range(2**256 + 1, PRIME, 2))


@pytest.mark.parametrize(("holders", "threshold"), [(1, 1), (5, 3), (40, 21)])
def test_any_enough_shares_make_every_secret(holders: int, threshold: int) -> None:
    secrets = [bytes(32), b"\xff" * 32, *(OperatingSystem().bytes(32) for _ in range(4))]
    dealt = deal(secrets, range(1, holders + 1), threshold, OperatingSystem())
    subsets = list(itertools.combinations(range(holders), threshold)) if holders <= 7 else []
    chooser = random.Random(0)
    for chosen in subsets or [chooser.sample(range(holders), threshold) for _ in range(5)]:
        points = tuple(place + 1 for place in chosen)
        found = [combine(points, [dealt[place][n] for place in chosen]) for n in range(len(secrets))]
        assert [value.to_bytes(32, "big") for value in found] == secrets


def test_dealing_many_at_once_equals_the_definition() -> None:
    secrets, threshold = [bytes([n]) * 32 for n in range(5)], 4
    drawn = fixed(1).bytes(48 * len(secrets) * (threshold - 1))
    words = [int.from_bytes(drawn[at : at + 48], "big") % PRIME for at in range(0, len(drawn), 48)]
    for point, shares in zip((1, 2, 90, 4097), deal(secrets, (1, 2, 90, 4097), threshold, fixed(1)), strict=True):
        for n, secret in enumerate(secrets):
            coefficients = [int.from_bytes(secret, "big"), *(words[power * len(secrets) + n] for power in range(threshold - 1))]
            assert shares[n] == sum(c * point**power for power, c in enumerate(coefficients)) % PRIME


def test_too_few_shares_fit_every_secret() -> None:
    """For any other secret there is a polynomial through the same shares, so they say nothing about it."""
    dealt = deal([b"a" * 32], range(1, 6), 3, OperatingSystem())
    points, known = (1, 2), [dealt[0][0], dealt[1][0]]
    for wanted in (0, 7, 2**256 - 1):
        weights = weights_at_zero((1, 2, 3))
        third = (wanted - weights[0] * known[0] - weights[1] * known[1]) * pow(weights[2], -1, PRIME) % PRIME
        assert combine((*points, 3), [*known, third]) == wanted


def test_a_bundle_with_a_number_that_is_not_below_the_prime_is_refused() -> None:
    """Two encodings of one share would have two hashes."""
    good = joined([0, PRIME - 1])
    assert checked(good, "a dealer") == good
    for wrong in ([PRIME, 1], [1, PRIME + 7]):
        with pytest.raises(UnreadableShares):
            checked(joined(wrong), "a dealer")
