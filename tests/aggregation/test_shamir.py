"""Any `threshold` shares make the secret, fewer tell nothing, and the arithmetic is that of the definition."""

from __future__ import annotations

import itertools
import random

import pytest

from securetm.aggregation.masked.messages import checked, joined
from securetm.aggregation.masked.refusals import UnreadableShares
from securetm.aggregation.masked.shamir import PRIME, combine, deal, weights_at_zero
from securetm.entropy import OperatingSystem, Seeded


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
