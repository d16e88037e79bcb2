"""The membership game: which of these documents were in the training? It poses the question and scores the answers.

It also states what differential privacy allows of such answers, for every attack that plays the game.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.attack import Challenge, Effort, Estimate, GroundTruth, Proportion, Score, stacked
from securetm.auditing.parts.roc import bounded_area, chance, curve, true_positives_at
from securetm.contracts import Array, Budget

SHARES = {0.001: "0.1 %", 0.01: "1 %"}  # false positive rates
OUTSIDE, INSIDE, BOTH = 0, 1, 2  # where a candidate lies, by the judge's answer
MEMBER, PAIR = "member", "pair of a member and another"


def found(share: float, how: str) -> str:
    """The measure of the true positive rate at this false positive rate."""
    return f"members told at {SHARES[share]} false alarms ({how})"


def ordered(how: str) -> str:
    """The measure of the area under the ROC curve."""
    return f"members ranked above others ({how})"


def measures(*ways: str) -> dict[str, str]:
    """The measures of an attack with these kinds of scores, and their units."""
    shares = {found(share, how): MEMBER for how in ways for share in SHARES}
    return {**shares, **{ordered(how): PAIR for how in ways}}


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:  # noqa: ARG001 - asked the same at any effort
    """Asks about all training and all held-out documents, shuffled. The answer is which of them were trained on.

    The question is a CSR array of counts in the agreed words. Documents with the same words are one document. A document on
    both sides stays among the candidates, but does not count. Documents of helpers, which the adversary knows, are left out.
    """
    empty = sparse.csr_array((0, len(truth.vocabulary)), dtype=np.int64)
    sides = [stacked([empty, *truth.honest(documents).values()]) for documents in (truth.held, truth.others)]
    whole = stacked(sides)
    rows, answer = _different_documents(whole, np.repeat([True, False], [side.shape[0] for side in sides]))
    order = rng.permutation(len(rows))
    return Challenge(whole[rows[order]], answer[order])


def _different_documents(whole: Any, member: Array) -> tuple[Array, Array]:
    """The first row of each different document, and its side."""
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
    """Compares the scores, which are higher for members, with the answer."""
    worth: dict[str, Proportion | Estimate] = {}
    curves = []
    for how, given in scores.items():
        sides = given[truth.answer == INSIDE], given[truth.answer == OUTSIDE]
        worth |= {found(share, how): true_positives_at(*sides, share, truth.confidence) for share in SHARES}
        worth[ordered(how)] = bounded_area(*sides, truth.confidence)
        curves.append(curve(how, *sides))
    return Score(worth, curves=(*curves, chance()))


def allowed(measure: str, claimed: Budget) -> float:
    """The most that (epsilon, delta) differential privacy allows of a measure. Only more refutes the claim.

    An attacker with false positive rate f has a true positive rate of at most e^epsilon f + delta, and of at most
    1 - e^-epsilon (1 - delta - f) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). A claim about a unit smaller than
    a document (a word) does not limit membership of documents, so it allows everything: 1.
    """
    if not claimed.unit.whole_documents:
        return 1.0
    grown, delta = exp(min(claimed.epsilon, 700.0)), claimed.delta  # more would overflow
    for share in SHARES:
        if measure.startswith(found(share, "").removesuffix("()")):
            return min(grown * share + delta, 1 - (1 - delta - share) / grown, 1.0)
    return 1 - (1 - delta) ** 2 / (1 + grown)  # the area below both bounds
