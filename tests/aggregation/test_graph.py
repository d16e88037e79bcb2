"""The ring of neighbours: its bounds hold when it is drawn many times, and it is complete where it is small."""

from __future__ import annotations

import hashlib
import itertools
import random

import pytest

from securetm.aggregation.masked.graph import (
    Geometry,
    Risk,
    disconnected,
    geometry,
    holds,
    masking,
    neighbourhoods,
    share_threshold,
    stalled,
)


def connected(members: set[int], ring: dict[int, tuple[int, ...]]) -> bool:
    reached, waiting = set[int](), [min(members)]
    while waiting:
        one = waiting.pop()
        reached.add(one)
        waiting.extend(peer for peer in ring[one] if peer in members - reached)
    return reached == members


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize(
    ("parties", "threshold", "colluding"), [(40, 36, 2), (60, 50, 3), (100, 90, 2), (100, 67, 2), (256, 200, 8)]
)
def test_the_computed_graph_keeps_within_its_risk(parties: int, threshold: int, colluding: int, chosen: bool) -> None:
    risk = Risk(threshold, colluding, chosen=chosen)
    found = geometry(parties, risk)
    assert holds(found, risk)
    assert not found.complete
    smaller = found.degree - 2
    assert not holds(Geometry(parties, smaller, share_threshold(parties, smaller, risk)), risk)


def test_neighbours_are_mutual_and_everybody_has_as_many() -> None:
    for seed in range(5):
        ring = neighbourhoods(tuple(range(0, 80, 2)), 12, bytes([seed]) * 32)
        assert all(len(set(peers)) == 12 and one not in peers for one, peers in ring.items())
        assert all(one in ring[peer] for one, peers in ring.items() for peer in peers)


def test_the_ring_follows_the_written_rule() -> None:
    """As protocols/masked_sum.md has it, computed another way."""
    places, seed, degree = (1, 4, 5, 9, 11, 12, 20), b"q" * 32, 4
    keys = sorted((hashlib.sha256(seed + bytes([0, place])).hexdigest(), place) for place in places)
    order = [place for _, place in keys]
    at = order.index(9)
    assert neighbourhoods(places, degree, seed)[9] == tuple(sorted(order[(at + d) % 7] for d in (-2, -1, 1, 2)))


def test_survivors_fall_apart_no_more_often_than_the_bound_says() -> None:
    """Small degrees, so that it happens: 20 parties, 4 neighbours, 8 gone."""
    risk, trials, chooser, apart = Risk(threshold=12, colluding=0), 2000, random.Random(1), 0
    for trial in range(trials):
        ring = neighbourhoods(tuple(range(20)), 4, trial.to_bytes(32, "big"))
        apart += not connected(set(range(20)) - set(chooser.sample(range(20), 8)), ring)
    assert 0 < apart / trials <= disconnected(20, 4, risk)


def test_no_choice_of_who_is_missing_cuts_a_graph_against_an_active_coordinator() -> None:
    ring = neighbourhoods(tuple(range(12)), 4, b"c" * 32)
    assert all(connected(set(range(12)) - set(gone), ring) for gone in itertools.combinations(range(12), 3))
    assert any(not connected(set(range(12)) - set(gone), ring) for gone in itertools.combinations(range(12), 4))
    active = Risk(threshold=30, colluding=2, complete_up_to=8, chosen=True)
    assert geometry(40, active).degree > 2 + 10
    assert disconnected(40, 12, active) == 1.0


def test_rounds_stall_no_more_often_than_the_bound_says() -> None:
    risk, trials, chooser, short = Risk(threshold=21, colluding=0), 1000, random.Random(2), 0
    for trial in range(trials):
        ring = neighbourhoods(tuple(range(30)), 8, trial.to_bytes(32, "big"))
        gone = set(chooser.sample(range(30), 9))
        short += any(len(set(peers) - gone) < 4 for peers in ring.values())
    assert 0 < short / trials <= stalled(30, 8, 4, risk)


def test_a_degree_that_is_too_small_is_known_as_such() -> None:
    risk = Risk(threshold=30, colluding=2, degree=4)
    assert not holds(geometry(40, risk), risk)


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize(
    ("parties", "threshold", "colluding", "degree", "masks"),
    [(32, 18, 2, 31, 31), (100, 52, 2, 99, 52), (100, 67, 2, 70, 36), (100, 90, 2, 24, 14), (99, 51, 2, 98, 52)],
)
def test_a_party_masks_with_more_neighbours_than_may_be_gone_and_with_no_others(
    parties: int, threshold: int, colluding: int, degree: int, masks: int, chosen: bool
) -> None:
    risk = Risk(threshold, colluding, chosen=chosen)
    drawn = geometry(parties, risk)
    assert (drawn.degree, masking(drawn, risk)) == (degree, masks)
    places, seed = tuple(range(parties)), b"m" * 32
    holders, partners = (neighbourhoods(places, found, seed) for found in (degree, masks))
    assert all(set(partners[place]) <= set(holders[place]) for place in places)


def test_where_chance_has_to_do_masks_lie_with_every_neighbour() -> None:
    risk = Risk(450, 10)
    drawn = geometry(500, risk)
    assert drawn.degree < 10 + 50
    assert masking(drawn, risk) == drawn.degree


def test_no_choice_of_who_is_gone_cuts_the_masks_of_those_who_remain() -> None:
    """Twelve parties that all hold shares: with a threshold of seven, up to six are gone or collude."""
    risk = Risk(threshold=7, colluding=1, complete_up_to=4)
    drawn = geometry(12, risk)
    masks = masking(drawn, risk)
    assert (drawn.complete, masks) == (True, 8)
    ring = neighbourhoods(tuple(range(12)), masks, b"c" * 32)
    for number in (5, 6):  # five leave at most; one more colludes, as two views leave room for
        assert all(connected(set(range(12)) - set(gone), ring) for gone in itertools.combinations(range(12), number))
    fewer = neighbourhoods(tuple(range(12)), 6, b"c" * 32)
    assert any(not connected(set(range(12)) - set(gone), fewer) for gone in itertools.combinations(range(12), 6))
