"""The copies from which a dropped party's masks are restored: each has a pad of its own, and opens one secret of one round."""

from __future__ import annotations

import hashlib
from itertools import combinations

from securetm.aggregation.masked.messages import SHORT
from securetm.aggregation.masked.pairs import Copies, fits, secret_hashes, secret_of

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
