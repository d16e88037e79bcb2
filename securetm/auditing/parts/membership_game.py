"""The membership game: which of these documents were in the training? Its question, its scores, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from securetm.answers.route import compile_route
from securetm.auditing.attack import Challenge, Effort, Estimate, GroundTruth, MemoryStore, Proportion, Score, stacked
from securetm.auditing.record import Curve
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import NotTestable, PublicFacts
from securetm.compiled import njit
from securetm.contracts import Answer, Array, Budget, Memory, RoundContext, State, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.data_classes import dataclass
from securetm.entropy import Seeded
from securetm.errors import BadSetting
from securetm.federation.questions import TRAIN, Questions
from securetm.plans.profiles import cohort_of

# ---- the largest log-likelihood of a document that any shares of given topics reach, compiled -----------------------
# Manzonelli, Zhang and Vadhan (2024) recognise members by this number.

_PASSES = 60
_SETTLED = 1e-3  # the largest change of a share in the last pass
_LEAST = 1e-30  # the least probability of a word, also of one that a model never saw


def best_fits(counts: Any, topics: Array) -> Array:
    """Each document's log-likelihood under its best shares of these topics. `topics`: topics x words."""
    by_word, fits = np.ascontiguousarray(np.maximum(topics.T, _LEAST)), np.empty(counts.shape[0])
    _fit(counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64), by_word, fits)
    return fits


@njit(cache=True, nogil=True)
def _fit(ends: Array, words: Array, counts: Array, by_word: Array, fits: Array) -> None:
    """Expectation maximisation of each document's shares. No pass lowers the likelihood."""
    k = by_word.shape[1]
    share, fresh = np.empty(k), np.empty(k)
    for d in range(len(ends) - 1):
        begin, end = ends[d], ends[d + 1]
        length = counts[begin:end].sum()
        share[:] = 1.0 / k
        for _ in range(_PASSES):
            fresh[:] = 0.0
            for i in range(begin, end):
                row = by_word[words[i]]
                each = counts[i] / _chance(share, row)
                for z in range(k):
                    fresh[z] += each * row[z]
            moved = 0.0
            for z in range(k):
                now = share[z] * fresh[z] / length
                moved = max(moved, abs(now - share[z]))
                share[z] = now
            if moved < _SETTLED:
                break
        fits[d] = 0.0
        for i in range(begin, end):
            fits[d] += counts[i] * math.log(_chance(share, by_word[words[i]]))


@njit(cache=True, nogil=True, inline="always")
def _chance(share: Array, row: Array) -> float:
    chance = 0.0
    for z in range(len(share)):
        chance += share[z] * row[z]
    return chance


# ---- one linear equation for each word, one unknown for each candidate ----------------------------------------------
# A table of topics shows how often each word occurs in all documents together, which is a sum over the documents that are in
# it. Noise makes the equations inexact; its deviation is given.

_VAGUE = 0.1  # of a word's variance, for what the equations leave out, such as documents that are no candidates
_GUESSED = 0.5  # the prior deviation of a document's presence from one half


def presence(
    counts: Any, totals: Array, share: float, deviation: float = 0.0, most: float = np.inf, each: float = np.inf
) -> Array:
    """A score that ranks documents by how likely they are in the total (damped least squares with a prior).

    `totals` is each word's count in all documents that are in, about `share` of the candidates; `deviation` is that of its
    noise. Where a profile bounds rows, a document counts with at most `each` of a word and `most` words in all. Only its party
    knows which words these are, so each word of a long document is in with some probability.
    """
    bounded = sparse.csr_array(counts, dtype=np.float64, copy=True)  # the mean counted row of each document
    bounded.data = np.minimum(bounded.data, each)
    kept = np.minimum(1.0, most / np.maximum(np.asarray(bounded.sum(axis=1)).ravel(), 1.0))  # the share of its words
    rows = sparse.csr_array(bounded.multiply(kept[:, None]))
    spread = np.asarray(rows.multiply(rows).sum(axis=0)).ravel() / 4
    unsure = share * (rows.multiply((1.0 - kept)[:, None])).sum(axis=0)
    scale = 1.0 / np.sqrt(_VAGUE**2 * np.maximum(spread, 0.25) + np.asarray(unsure).ravel() + deviation**2)
    missing = (totals - share * np.asarray(rows.sum(axis=0)).ravel()) * scale
    found: Array = lsqr((rows.multiply(scale[None])).T.tocsr(), missing, damp=1 / _GUESSED, iter_lim=100)[0]
    return found


# ---- shadow models: the attacker trains models of its own on parts of the candidates, by the public plan ------------

# a round's number, its sum as the opening role sees it, and the next state
ShadowRound = tuple[int, Mapping[str, Array], State]
Statistic = Callable[[Iterator[ShadowRound]], Array]  # a number for each candidate, from one training
_LEAST_VARIANCE = 1e-12  # variance: constant scores must not divide by zero


@dataclass(frozen=True)
class ShadowScores:
    """The score of each candidate by each shadow model, and which candidates the model was trained on."""

    scores: Array  # shadow models x candidates
    inside: Array

    def log_ratios(self, scores: Array) -> Array:
        """The log-likelihood ratio of each candidate's score: with the candidate in the training, against without it.

        A score is normal with one of two means. Both have one variance, because few models estimate two badly (Carlini et al.
        2022, section 6).
        """
        inside, models = self.inside, len(self.inside)
        within, without = inside.sum(axis=0), (~inside).sum(axis=0)
        if models < 3 or not (within.all() and without.all()):
            raise BadSetting("likelihood ratio", "shadows", str(models), "must be 3 or more, with each document in some only")
        member = np.where(inside, self.scores, 0.0).sum(axis=0) / within
        other = np.where(inside, 0.0, self.scores).sum(axis=0) / without
        spread = np.square(self.scores - np.where(inside, member, other)).sum(axis=0) / (models - 2)
        found: Array = (np.square(scores - other) - np.square(scores - member)) / (2 * np.maximum(spread, _LEAST_VARIANCE))
        return found


def shadows_of(candidates: Any, words: tuple[str, ...], public: PublicFacts, number: int, statistic: Statistic) -> ShadowScores:
    """Trains so many models, each on the share of candidates that the plan trains on, and scores all candidates with each."""
    if any(mechanism.once for mechanism in public.profile.mechanisms):  # such noise needs the order of words
        more = "need more of a document than the counts of its words"
        raise NotTestable(f"shadow models of the profile {public.profile.name} {more}")
    rng = np.random.default_rng(19_84)
    inside = parts(number, candidates.shape[0], 1 - public.plan.training.held_out, rng)
    scores = np.empty(inside.shape)
    for at, chosen in enumerate(inside):
        scores[at] = statistic(training(candidates, np.flatnonzero(chosen), words, public, rng))
    return ShadowScores(scores, inside)


def parts(number: int, documents: int, share: float, rng: np.random.Generator) -> Array:
    """Which shadow models train on which documents. Each document is in the same number of models, chosen at random."""
    taken = min(max(round(number * share), 1), number - 1)
    inside: Array = rng.random((number, documents)).argsort(axis=0) < taken
    return inside


def training(
    candidates: Any, rows: Array, words: tuple[str, ...], public: PublicFacts, rng: np.random.Generator
) -> Iterator[ShadowRound]:
    """One training on these candidates by the public plan, divided among as many parties, round by round.

    The seed is the run's public seed, so topics begin as in the run.
    """
    questions = Questions(public.agreement)
    questions.adopt(words)
    entropy = Seeded(rng.bytes(32), unsafe=True)
    shares = np.array_split(rng.permutation(rows), len(public.members))
    parties = [_documents(candidates[share], words, public, rng) for share in shares]
    memories: list[Memory] = [{} for _ in parties]
    state = public.agreement.start(words)
    for number in range(public.plan.training.rounds):
        query = questions.make(TRAIN, public.model.for_party(state, ""))
        cohort = cohort_of(public.profile, public.members, number=number, seed=public.plan.seed)
        route, context = compile_route(query.terms, public.profile, cohort), RoundContext(cohort, entropy, MemoryStore())
        vectors = [
            route.answer(query, documents, context, memory, rng).vector
            for documents, memory in zip(parties, memories, strict=True)
        ]
        total = {name: np.sum([one[name] for one in vectors], axis=0) for name in vectors[0]}
        opened = Answer(total, {}, public.members)
        seen, answer = route.seen_and_opened(opened, context)
        state = public.model.update(state, answer)
        yield number, seen.total or {}, state


def rounds_read(public: PublicFacts, rounds: int) -> tuple[int, ...]:
    """The rounds that the attack reads: so many, spread evenly from the first to the last."""
    last = public.plan.training.rounds - 1
    return tuple(int(number) for number in np.unique(np.linspace(0, last, min(rounds, last + 1)).round()))


def _documents(counts: Any, words: tuple[str, ...], public: PublicFacts, rng: np.random.Generator) -> Corpus:
    """One party's candidates, with keys of its own.

    The person of a candidate is unknown, so where persons are protected each candidate has a person of its own.
    """
    persons = np.arange(counts.shape[0]) if public.agreement.unit is Unit.PERSON else None
    keys = rng.integers(0, 2**64, counts.shape[0], dtype=np.uint64)
    return Corpus(HeldDocuments(counts, words, keys, persons=persons))


# ---- the ROC curve --------------------------------------------------------------------------------------------------

_POINTS = 400  # of a drawn curve


def rates(members: Array, others: Array) -> tuple[Array, Array]:
    """False and true positive rates, from a threshold above all scores (0, 0) to one below all (1, 1)."""
    levels = np.unique(np.concatenate([members, others]))[::-1]
    false, true = (
        (len(scores) - np.searchsorted(np.sort(scores), levels, side="left")) / max(len(scores), 1)
        for scores in (others, members)
    )
    return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])


def curve(label: str, members: Array, others: Array) -> Curve:
    """The curve for the report. Of very many points, it keeps some that are spread evenly on a logarithmic scale."""
    across, up = rates(members, others)
    if len(across) > _POINTS:
        aims = np.concatenate([[0.0], np.geomspace(1 / max(len(others), 2), 1.0, _POINTS - 1)])
        kept = np.unique(np.append(np.searchsorted(across, aims, side="right") - 1, 0))
        across, up = across[kept], up[kept]
    return Curve("roc", label, tuple(map(float, across)), tuple(map(float, up)))


def chance() -> Curve:
    aims = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 50)])
    return Curve("roc", "chance", tuple(map(float, aims)), tuple(map(float, aims)))


def area_under_curve(members: Array, others: Array) -> float:
    """The area under the curve: the share of pairs with the member above the other. Equal scores count half."""
    if not len(members) or not len(others):
        return 0.5  # there are no pairs
    ranked = np.sort(others)
    below, upto = (np.searchsorted(ranked, members, side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(others)))


def bounded_area(members: Array, others: Array, confidence: float) -> Estimate:
    """The area under the curve, with an interval for any distribution (Hoeffding 1963, section 5: two-sample statistics)."""
    fewest = min(len(members), len(others))
    if not fewest:
        return Estimate(0.5, 0.0, 1.0, 0.0)
    found, half = area_under_curve(members, others), math.sqrt(math.log(2 / (1 - confidence)) / (2 * fewest))
    return Estimate(found, max(found - half, 0.0), min(found + half, 1.0), 1.0 - half)


def allowed_false_positives(others: int, share: float, confidence: float) -> int:
    """How many of so many others may lie above a threshold, if its false positive rate is at most `share` at this confidence.

    The true rate above the (k + 1)-th highest of n scores has a beta distribution with k + 1 and n - k. A result below 0 means
    that there are too few others for any threshold.
    """
    from scipy.stats import binom

    return int(binom.ppf(1 - confidence, others, share)) - 1 if others else -1


def true_positives_at(members: Array, others: Array, share: float, confidence: float) -> Proportion:
    """The members above a threshold with at most this false positive rate; nothing if there are too few others.

    The threshold takes one half of the doubt, and the interval of the members above it the other half.
    """
    allowed = allowed_false_positives(len(others), share, corrected(confidence, 2))
    if allowed < 0:
        return Proportion(0, 0)
    threshold = np.sort(others)[len(others) - 1 - allowed]
    return Proportion(int((members > threshold).sum()), len(members), doubt=0.5)


# ---- the game -------------------------------------------------------------------------------------------------------

SHARES = {0.001: "0.1 %", 0.01: "1 %"}  # false positive rates
OUTSIDE, INSIDE, BOTH = 0, 1, 2  # where a candidate lies, by the judge's answer
MEMBER, PAIR = "member", "pair of a member and another"


def found(share: float, how: str) -> str:
    return f"members told at {SHARES[share]} false alarms ({how})"


def ordered(how: str) -> str:
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
    whole.sum_duplicates()
    whole.eliminate_zeros()
    first: dict[bytes, int] = {}  # the row of each different document that comes first, and the sides on which it stands
    standing: dict[bytes, set[int]] = {}
    for row, (begin, end) in enumerate(zip(whole.indptr[:-1], whole.indptr[1:], strict=True)):
        name = whole.indices[begin:end].tobytes() + whole.data[begin:end].tobytes()
        first.setdefault(name, row)
        standing.setdefault(name, set()).add(INSIDE if row < sides[0].shape[0] else OUTSIDE)
    answer = np.array([BOTH if len(both) == 2 else min(both) for both in standing.values()], dtype=np.int8)
    rows, order = np.array(list(first.values()), dtype=np.int64), rng.permutation(len(first))
    return Challenge(whole[rows[order]], answer[order])


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
    grown, delta = math.exp(min(claimed.epsilon, 700.0)), claimed.delta  # more would overflow
    for share in SHARES:
        if measure.startswith(found(share, "").removesuffix("()")):
            return min(grown * share + delta, 1 - (1 - delta - share) / grown, 1.0)
    return 1 - (1 - delta) ** 2 / (1 + grown)  # the area below both bounds
