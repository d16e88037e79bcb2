"""The question of membership: documents of which some were trained on, without a word of which; and what answers are worth.

It guesses nothing. What differential privacy allows of such guesses stands here as well, for every attack that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.leakage.attack import Challenge, ClaimedEpsilon, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.leakage.parts.roc import bounded_order, chance, curve, found_at

SHARES = {0.001: "0.1 %", 0.01: "1 %"}  # of others that are taken for members
OUTSIDE, INSIDE, BOTH = 0, 1, 2  # of the training: a candidate, by the judge's answer
MEMBER, PAIR = "member", "pair of a member and another"
_WHOLE = ("document", "person", "party")  # what hides these hides a whole document


@dataclass(frozen=True)
class MembershipCandidates:
    """Documents in the agreed words, in a random order, each of them once."""

    counts: Any  # a CSR array

    def __len__(self) -> int:
        return int(self.counts.shape[0])


def found(share: float, how: str) -> str:
    """The name of a measure: how many members are told where few others are taken for one."""
    return f"members told at {SHARES[share]} false alarms ({how})"


def ordered(how: str) -> str:
    """The name of a measure: the area under the curve, in words."""
    return f"members ranked above others ({how})"


def measures(*ways: str) -> dict[str, str]:
    """Each measure and its unit, for an attack that scores documents in these ways."""
    shares = {found(share, how): MEMBER for how in ways for share in SHARES}
    return {**shares, **{ordered(how): PAIR for how in ways}}


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:  # noqa: ARG001 - asked the same at any effort
    """Run by the judge: all training documents and all that were held out, each once, shuffled; the answer is which are in.

    Documents of the same words are one document, and one that lies on both sides is neither: it is among them, but no guess
    about it counts. What helpers of the adversary hold is known to it, and no question.
    """
    sides = [_side(documents, truth) for documents in (truth.held, truth.others)]
    whole = sparse.csr_array(sparse.vstack(sides))
    rows, answer = _told_apart(whole, np.repeat([True, False], [side.shape[0] for side in sides]))
    order = rng.permutation(len(rows))
    return Challenge(MembershipCandidates(whole[rows[order]]), answer[order])


def _side(documents: Mapping[str, Any], truth: GroundTruth) -> Any:
    """All that parties hold who do not help the adversary."""
    tables = [counts for party, counts in documents.items() if party not in truth.helpers]
    return sparse.vstack([sparse.csr_array((0, len(truth.vocabulary)), dtype=np.int64), *tables], format="csr")


def _told_apart(whole: Any, member: Array) -> tuple[Array, Array]:
    """The first of each document, and on which side it lies."""
    whole.sum_duplicates()
    whole.eliminate_zeros()
    first: dict[bytes, int] = {}
    sides: dict[bytes, set[bool]] = {}
    for row, (begin, end) in enumerate(zip(whole.indptr[:-1], whole.indptr[1:], strict=True)):
        name = whole.indices[begin:end].tobytes() + whole.data[begin:end].tobytes()
        first.setdefault(name, row)
        sides.setdefault(name, set()).add(bool(member[row]))
    answer = [BOTH if len(side) == 2 else INSIDE if True in side else OUTSIDE for side in sides.values()]
    return np.array(list(first.values()), dtype=np.int64), np.array(answer, dtype=np.int8)


def judged(scores: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Run by the judge: scores by way of scoring, higher for members, against the answer."""
    worth: dict[str, Proportion | Estimate] = {}
    curves = []
    for how, given in scores.items():
        sides = given[truth.answer == INSIDE], given[truth.answer == OUTSIDE]
        worth |= {found(share, how): found_at(*sides, share, truth.confidence) for share in SHARES}
        worth[ordered(how)] = bounded_order(*sides, truth.confidence)
        curves.append(curve(how, *sides))
    return Score(worth, curves=(*curves, chance()))


def allowed(measure: str, claimed: ClaimedEpsilon) -> float:
    """What an (epsilon, delta)-private model leaves to any attacker at most; only more than that refutes the claim.

    Whatever says "member" of a share f of others says it of at most e^epsilon f + delta of members, and of at most
    1 - e^-epsilon (1 - delta - f) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). A claim about units smaller than
    a document (a word) says nothing of whole documents, so no membership refutes it: 1.
    """
    if claimed.unit not in _WHOLE:
        return 1.0
    grown, delta = exp(min(claimed.epsilon, 700.0)), claimed.delta  # beyond that it is more than any number
    for share in SHARES:
        if measure.startswith(found(share, "").removesuffix("()")):
            return min(grown * share + delta, 1 - (1 - delta - share) / grown, 1.0)
    return 1 - (1 - delta) ** 2 / (1 + grown)  # the area below both bounds
