"""The graph of a masked sum: who masks with whom, and who holds shares of whose secrets. It sends nothing.

Shares lie with everybody, or with random neighbours on a ring; a party masks with the nearest of these. The probabilities are
union bounds over who colludes and who leaves, where that does not depend on the ring. Where a coordinator chooses who leaves
(`chosen`), no choice may cut the graph.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from math import exp, lgamma, log

from securetm.data_classes import dataclass

PLACE = 2  # bytes of a party's place in the roster
GRAPHS = 2  # which rule draws graphs: by the first, a party masked with all who held its shares


@dataclass(frozen=True)
class Geometry:
    """How far each party reaches along the ring, and how many shares open a secret."""

    parties: int
    degree: int  # neighbours of each party
    threshold: int  # shares that open a secret, of degree + 1: each party holds one of its own

    @property
    def complete(self) -> bool:
        """Whether everybody is everybody's neighbour."""
        return self.degree >= self.parties - 1


@dataclass(frozen=True)
class Risk:
    """What a graph is built against: public numbers that all parties share."""

    threshold: int  # parties that remain in a round, at least
    colluding: int
    complete_up_to: int = 32
    degree: int = 0  # 0: the smallest that will do
    failure: float = 2.0**-40  # probability that a sum of fewer than all honest survivors shows
    stall: float = 2.0**-20  # probability that a round cannot be opened though enough parties remain
    chosen: bool = False  # whether an active coordinator chooses who is missing, and may look at the ring first


def masking(drawn: Geometry, risk: Risk) -> int:
    """With how many of its neighbours a party masks: with more than may be gone, so that no choice cuts the ring, or with all.

    Masks only have to join those who remain; shares must reach enough holders as well, which takes more of them. Where all
    hold shares, as many may collude as two views of one secret leave room for, and not only those that the profile fears.
    """
    if drawn.parties <= risk.complete_up_to:
        return drawn.degree
    gone = risk.threshold - 1 if drawn.complete else risk.colluding + drawn.parties - risk.threshold
    return min(drawn.degree, gone + 2 - gone % 2)  # even, and above the number of those gone


@lru_cache(maxsize=128)
def geometry(parties: int, risk: Risk) -> Geometry:
    """The smallest graph within the risk: everybody with everybody if there are few, or if nothing smaller will do."""
    if parties <= risk.complete_up_to or 0 < parties - 1 <= risk.degree:
        return Geometry(parties, parties - 1, risk.threshold)
    if risk.degree:
        return Geometry(parties, risk.degree, share_threshold(parties, risk.degree, risk))
    for degree in range(2, parties - 1, 2):
        drawn = Geometry(parties, degree, share_threshold(parties, degree, risk))
        if holds(drawn, risk):
            return drawn
    return Geometry(parties, parties - 1, risk.threshold)


def holds(drawn: Geometry, risk: Risk) -> bool:
    """Whether a graph keeps within the risk. A complete one always does: its threshold was checked without chance."""
    apart = disconnected(drawn.parties, drawn.degree, risk)
    return drawn.complete or (
        drawn.threshold <= drawn.degree
        and apart <= risk.failure / 2
        and stalled(drawn.parties, drawn.degree, drawn.threshold, risk) <= risk.stall
    )


def share_threshold(parties: int, degree: int, risk: Risk) -> int:
    """The fewest shares t such that hardly any neighbourhood can open two views, which takes 2 t <= holders + colluding."""
    for threshold in range((degree + 1) // 2 + 1, degree + 2):
        least = 2 * threshold - (degree + 1)  # colluding neighbours that make two views
        if risk.chosen and least <= min(risk.colluding, degree):
            continue
        if parties * _at_least(least, parties - 1, risk.colluding, degree) <= risk.failure / 2:
            return threshold
    return degree + 1


def disconnected(parties: int, degree: int, risk: Risk) -> float:
    """Bounds the probability that the graph of honest survivors is cut, which takes two missing runs of degree / 2 places."""
    gone = min(parties, risk.colluding + parties - risk.threshold)
    if gone < degree or risk.chosen:  # cutting the ring takes two runs: fewer than that many gone never do
        return float(gone >= degree)
    return exp(log(parties * (parties - 1) / 2) + _log_comb(gone, degree) - _log_comb(parties, degree))


def stalled(parties: int, degree: int, threshold: int, risk: Risk) -> float:
    """Bounds the probability that some secret has fewer than `threshold` holders left."""
    return parties * _at_least(degree - threshold + 1, parties - 1, parties - risk.threshold, degree)


def _at_least(least: int, population: int, marked: int, drawn: int) -> float:
    """The probability that at least `least` of `drawn` members are marked."""
    hits = range(max(least, 0, drawn - (population - marked)), min(marked, drawn) + 1)
    every = _log_comb(population, drawn)
    return sum(exp(_log_comb(marked, hit) + _log_comb(population - marked, drawn - hit) - every) for hit in hits)


def _log_comb(n: int, k: int) -> float:
    """The logarithm of n over k: the numbers themselves have hundreds of digits."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def neighbourhoods(places: tuple[int, ...], degree: int, seed: bytes) -> dict[int, tuple[int, ...]]:
    """Each place's neighbours, in order: those within degree / 2 on a ring whose order is that of SHA-256(seed, place)."""
    if degree >= len(places) - 1:
        return {one: tuple(other for other in places if other != one) for one in places}
    ring = sorted(places, key=lambda place: hashlib.sha256(seed + place.to_bytes(PLACE, "big")).digest())
    steps = [step for far in range(1, degree // 2 + 1) for step in (far, -far)]
    return {one: tuple(sorted({ring[(at + step) % len(ring)] for step in steps})) for at, one in enumerate(ring)}
