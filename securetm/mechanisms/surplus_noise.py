"""The parts of a share of noise that are there for parties that may be missing, and are taken off the sum if they are not.

Each part is drawn from a seed of its own, and whoever is told the seed draws it again. Who tells it, and when, is the business
of the aggregation. That enough noise stays is shown in `protocols/surplus_noise.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import hypot, sqrt

import numpy as np

from securetm.contracts import Answer, Array, Cohort, Entropy, Terms
from securetm.entropy import Expanded
from securetm.mechanisms.samplers import Sampler

SEED = 32  # bytes; the rest of PART is the hash of what was drawn
_AT_ONCE = 1 << 20  # draws at a time, the same for whoever draws them again


@dataclass(frozen=True)
class SurplusPart:
    """One part of every party's share. A sum over so many `parties` or more does not need it."""

    noise: Sampler
    parties: int

    def add(self, vector: Array, entropy: Entropy) -> bytes:
        """Run by a party: adds fresh noise in place. Returns what reveals it, which is as secret as the noise."""
        seed = entropy.bytes(SEED)
        return seed + self._apply(vector, seed, 1)

    def take_off(self, vector: Array, revealed: bytes) -> bool:
        """Run by the opening role: takes the noise off again, in place. Noise that is drawn otherwise here stays.

        So does what a party claims to have drawn and did not.
        """
        seed, drawn = revealed[:SEED], revealed[SEED:]
        if self._apply(vector, seed, -1) == drawn:
            return True
        self._apply(vector, seed, 1)
        return False

    def _apply(self, vector: Array, seed: bytes, sign: int) -> bytes:
        """Adds or subtracts what the seed gives, and hashes it."""
        stream, hashed = Expanded(seed), hashlib.sha256()
        for start in range(0, len(vector), _AT_ONCE):
            part = vector[start : start + _AT_ONCE]
            drawn = self.noise.draw(stream, len(part))
            hashed.update(drawn.astype("<i8", copy=False).data)
            part += sign * drawn
        return hashed.digest()


def sizes_of(cohort: Cohort) -> tuple[int, ...]:
    """The numbers of survivors for which the noise is measured out: all parties, 1, 2, 4, ... fewer, and the fewest allowed.

    A sum over a number in between keeps the noise of the next smaller one.
    """
    members, fewest = len(cohort.members), cohort.threshold
    missing = (0, *(1 << doubled for doubled in range(members.bit_length())))
    return (*(members - gone for gone in missing if members - gone > fewest), min(members, fewest))


def variances_of(cohort: Cohort, total: float, least: float) -> tuple[float, ...]:
    """The variances of the parts of one share, for sums with `total` in the honest shares. The first part always stays.

    There is one part alone, enough for the fewest survivors, if some part would have less variance than `least`.
    """
    whole = [total / (size - cohort.colluding) for size in sizes_of(cohort)]
    parts = (whole[0], *(more - enough for enough, more in pairwise(whole)))
    return parts if min(parts) >= least else (whole[-1],)


def most_draws(cohort: Cohort, parts: int) -> int:
    """How many draws of honest parties give the whole variance, at most, if each share has so many parts."""
    sizes = sizes_of(cohort) if parts > 1 else (cohort.threshold,)
    return max((size - cohort.colluding) * kept for kept, size in enumerate(sizes, start=1))


def without_surplus(answer: Answer, parts: Sequence[SurplusPart], terms: Terms, cohort: Cohort) -> Answer:
    """The opened sum without the noise that it does not need, and with the deviation of what stays in it."""
    survivors = answer.survivors or cohort.members
    if answer.total is None:
        return answer
    off = _taken_off(answer.total, parts, answer.revealed, terms.unneeded(len(survivors)))
    left = [part.noise.deviation * sqrt(len(survivors) - gone) for part, gone in zip(parts, off.taken, strict=True)]
    return replace(answer, total=off.total, revealed={}, deviation=hypot(answer.deviation, *left))


@dataclass(frozen=True)
class _TakenOff:
    total: Mapping[str, Array]
    taken: list[int]  # by part: of how many parties


def _taken_off(
    total: Mapping[str, Array], parts: Sequence[SurplusPart], revealed: Mapping[str, Sequence[bytes]], unneeded: Sequence[int]
) -> _TakenOff:
    taken = [0] * len(parts)
    if not revealed or not unneeded:
        return _TakenOff(total, taken)
    vector = np.concatenate([np.asarray(block, np.int64).ravel() for block in total.values()])
    for told in revealed.values():
        for part, one in zip(unneeded, told, strict=True):
            taken[part] += parts[part].take_off(vector, one)
    ends = np.cumsum([block.size for block in total.values()])[:-1]
    pieces = zip(total.items(), np.split(vector, ends), strict=True)
    return _TakenOff({name: piece.reshape(block.shape) for (name, block), piece in pieces}, taken)
