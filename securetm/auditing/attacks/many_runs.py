"""How much epsilon one noised sum shows when it is made very often, with one known document in it or without.

It tests the noise itself and nothing of a whole run: no sampling, no rounds, and no model that forgets. One run cannot
distinguish half the noise from all of it; very many sums can.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import total
from securetm.accounting.spends import leaves_of
from securetm.answers.route import Route, Step, compile_route
from securetm.auditing.attack import (
    EVERY_MODEL,
    Attack,
    Challenge,
    Effort,
    Estimate,
    GroundTruth,
    MemoryStore,
    Proportion,
    Score,
)
from securetm.auditing.parts.empirical_epsilon import (
    ErrorCounts,
    best_threshold,
    direct_epsilon,
    epsilon_curves,
    errors_at,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_shift,
    ideal_direct,
    ideal_gaussian,
    ideal_pure,
    log_ratio,
    shift,
)
from securetm.auditing.record import Curve
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import REQUEST, AdversaryView, PublicFacts
from securetm.contracts import (
    INF,
    Answer,
    Array,
    Block,
    Budget,
    ClippedSum,
    Cohort,
    Domain,
    Mechanism,
    Memory,
    Needs,
    Noised,
    RoundContext,
    State,
    Terms,
    Unit,
)
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.data_classes import dataclass, field, replace
from securetm.entropy import OperatingSystem
from securetm.federation.budget.prices import spend_of
from securetm.federation.questions import JOINT, PAIRS, TRAIN, Questions
from securetm.mechanisms.noise_shares import honest_shares
from securetm.models.questions.word_sums import WordSums
from securetm.plans.profiles import cohort_of

# ---- sums of few numbers, made through a profile's own mechanisms ---------------------------------------------------
# Every step of the route is the profile's own and draws from the operating system. Only the sum is shorter, and it has no other
# document in it. So it shows all that noise leaves of one document to an attacker who knows all others.

NAME = "canary"
NUMBERS = 40  # in a sum at most: more than a bounded row of counts may have, so this bound is tested as well
TOO_LONG = 10.0  # times the clip's bound, so the clip is tested as well
DELTA = 1e-5  # of the epsilon that is stated where nothing is claimed
_AT_ONCE = 1 << 15  # sums in one vector
_SLOTS = 1 << 14  # with the noise of one secret
_WORDS = 16  # words that a slot's noise is drawn over
_VOCABULARY = tuple(f"word{n}" for n in range(_WORDS))


@dataclass(frozen=True)
class CanarySums:
    """Opened sums, one a row: labelled sums with and without the canary, and sums in which a hidden fair coin put it or not.

    An attacker could make the labelled sums, since it knows the profile, the canary, and all other documents.
    """

    present: Array
    absent: Array
    unknown: Array = field(repr=False)

    def shuffled(self, rng: np.random.Generator) -> Self:
        """The same sums in a random order, for the control: what an attack still finds is chance."""
        return replace(self, unknown=rng.permutation(self.unknown, axis=0))


@dataclass(frozen=True)
class SumClaim:
    """The epsilon at this delta that one sum claims for a unit that is certainly in it; None where nothing is claimed."""

    epsilon: float | None
    delta: float
    pure: bool = False  # whether the epsilon holds at delta 0, as for Laplace noise


@dataclass(frozen=True)
class CanarySumSource:
    """Makes sums of few numbers under a profile."""

    public: PublicFacts
    asked: Terms
    cohort: Cohort

    @classmethod
    def about(cls, public: PublicFacts, words: tuple[str, ...], question: str = TRAIN) -> Self:
        """For this question, shortened, and without sampling, so no coin leaves the canary out.

        It is the training's, that about pairs of words before it, with the noise that its share of the budget pays for, or
        that by which words are found in noised sums, whether or not the run asked it.
        """
        if question == JOINT:
            terms = WordSums().terms
        else:
            questions = Questions(public.agreement)
            questions.adopt(words)
            state: State = {}
            if question == TRAIN:
                state = public.model.for_party(public.model.start(words, np.random.default_rng(0)), public.members[0])
            terms = questions.make(question, state).terms
        short = (Block(NAME, (min(terms.size, NUMBERS),)),)
        asked = replace(terms, layout=short, batch=0, needs=Needs.SUM, ragged=False)
        return cls(public, asked, cohort_of(public.profile, public.members))

    @cached_property
    def route(self) -> Route:
        return compile_route(self.asked, self.public.profile, self.cohort)

    @property
    def of_words(self) -> bool:
        """Whether single words are protected: then noise is drawn over slots of words, and not over sums."""
        return self.route.terms.unit is Unit.WORD

    @property
    def width(self) -> int:
        return _WORDS if self.of_words else self.route.terms.size

    @property
    def claimed(self) -> SumClaim:
        """The accountant's epsilon of this one sum, by the mechanism's own event, without sampling."""
        budget = self.public.profile.budget
        spend = spend_of(self.route)
        if budget is None or spend is None:
            return SumClaim(None, DELTA)
        pure = basic_epsilon(leaves_of([spend])) < INF
        epsilon = total([spend], budget.delta).epsilon
        return SumClaim(epsilon if epsilon < INF else None, budget.delta, pure)

    def opened(self, n: int, *, present: bool) -> Array:
        mixing = any(mechanism.mixes for mechanism in self.public.profile.mechanisms)
        at_once, make = (_SLOTS, self._slots) if self.of_words else (1 if mixing else _AT_ONCE, self._sums)
        made = [make(min(at_once, n - start), present) for start in range(0, n, at_once)]
        return np.concatenate([np.zeros((0, self.width), dtype=np.float32), *made])

    # ---- sums over documents ----

    def _sums(self, times: int, present: bool) -> Array:
        """Sends `times` equal sums through every step as one vector. Each number gets noise of its own."""
        terms = self.route.terms
        shape = (terms.size,) if times == 1 else (times, terms.size)
        # with noise in shares, a sum holds the answers of all parties that do not collude
        answers = honest_shares(self.cohort) if terms.noised is Noised.SHARE else 1
        added = sum(self._vector(present and first, shape) for first in (True, *(False,) * (answers - 1)))
        opened = self.route.opened(Answer({NAME: np.asarray(added)}), self._context()).total
        assert opened is not None  # a sum was asked for
        return np.asarray(opened[NAME], dtype=np.float32).reshape(times, terms.size)

    def _vector(self, present: bool, shape: tuple[int, ...]) -> Array:
        """The vector of one party, with the canary or without any document, before it is sealed."""
        repeating = Step(_RepeatedVector(shape[0] if len(shape) > 1 else 1), self.asked, self.asked, self.cohort)
        terms = replace(self.route.terms, layout=(Block(NAME, shape),))
        longer = replace(self.route, steps=(repeating, *self.route.steps), terms=terms)
        asked, admitted, n = self.asked, self.route.terms, int(present)
        # the canary's row: the same number at every place, and longer than the bound, if there is one
        if asked.domain is Domain.INTEGER:
            row = np.full((1, asked.size), 1 if admitted.linf == INF else int(TOO_LONG * admitted.linf))
        else:
            length = 1.0 if admitted.l2 == INF else TOO_LONG * admitted.l2 * (admitted.grid or 1.0)
            row = np.full((1, asked.size), length / asked.size**0.5)
        none = sparse.csr_array((n, _WORDS), dtype=np.int64)
        documents = Corpus(HeldDocuments(none, _VOCABULARY, np.arange(n, dtype=np.uint64), persons=np.arange(n)))
        answer = longer.answer(_CanaryQuery(asked, row), documents, self._context(), {}, np.random.default_rng(0))
        vector = np.asarray(answer.vector[NAME])
        return vector.astype(np.int64) if vector.dtype.kind == "i" else vector

    def _context(self) -> RoundContext:
        return RoundContext(self.cohort, OperatingSystem(), MemoryStore())

    # ---- slots of words ----

    def _slots(self, n: int, present: bool) -> Array:
        """Slots with their word, or without it. One secret gives all of them their noise."""
        # what noise in the words reads of one document: slots with a word each, or with none of them (-1)
        documents: Any = SimpleNamespace(
            tokens=np.full(n, 0 if present else -1, dtype=np.int32),
            token_ends=np.array([n], dtype=np.int64),
            sentence_ends=None,
            vocabulary=_VOCABULARY,
            keys=np.zeros(1, dtype=np.uint64),
            block_numbers=None,
            perturbed=None,
        )
        documents = self.route.on_documents(documents, self._context())
        ends, words, weights = documents.perturbed.between(0, n)
        table = np.zeros((n, _WORDS), dtype=np.float32)
        table[np.repeat(np.arange(n), np.diff(ends)), words] = weights
        return table


@dataclass(frozen=True)
class _CanaryQuery:
    """The question. Its answer is the canary's row, if the canary is there."""

    terms: Terms
    row: Array

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        if len(documents):
            clipped_sum.add(self.row, np.zeros(1, dtype=np.int64))


@dataclass(frozen=True)
class _RepeatedVector(Mechanism):
    """Lays equal vectors end to end, so that the steps after it draw for each of them."""

    times: int

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:  # noqa: ARG002
        return np.tile(vector, self.times)


RUNS = "runs"
DIRECT = "share of one sum's epsilon that is shown, nothing assumed"
GAUSSIAN = "share of one sum's epsilon that is shown, if the noise is Gaussian"
UNCLAIMED = 1.0  # the epsilon to compare with where a profile claims none
NOTHING = 1e-6  # the epsilon to compare with where a profile claims 0: a share of 0 would be infinite
_CHOSEN_AT = 0.999  # the confidence at which thresholds are chosen; they are judged at the plan's own


@dataclass(frozen=True)
class ThresholdTest:
    """The score of each unlabelled sum, and the score from which on the canary is said to be in it, for each bound."""

    scores: Array
    direct: float
    gaussian: float


@dataclass(frozen=True)
class HiddenCoins:
    """In which sums the canary was, and what one sum claims. Only the judge has it."""

    coins: Array
    claim: SumClaim


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator, question: str = TRAIN) -> Challenge:
    """Makes sums with and without a label. Their noise is the operating system's; only the coins can be repeated."""
    assert truth.public is not None
    source, half = CanarySumSource.about(truth.public, truth.vocabulary, question), max(effort[RUNS] // 4, 1)
    coins = rng.integers(0, 2, 2 * half).astype(bool)
    unknown = np.empty((2 * half, source.width), dtype=np.float32)
    unknown[coins], unknown[~coins] = (source.opened(int((coins == there).sum()), present=there) for there in (True, False))
    sums = CanarySums(source.opened(half, present=True), source.opened(half, present=False), unknown)
    return Challenge(sums, HiddenCoins(coins, source.claimed), sums.shuffled)


def attack(view: AdversaryView, effort: Effort) -> ThresholdTest:
    """Projects the sums on the direction in which the canary moves them, and chooses thresholds on the labelled sums."""
    sums: CanarySums = view.question
    moved = (sums.present.mean(axis=0) - sums.absent.mean(axis=0)).astype(np.float64)
    present, absent = sums.present @ moved, sums.absent @ moved
    delta = view.public.profile.budget.delta if view.public.profile.budget else 0.0
    direct = best_threshold(present, absent, lambda errors: direct_epsilon(errors, delta, _CHOSEN_AT))
    gaussian = best_threshold(present, absent, lambda errors: gaussian_shift(errors, _CHOSEN_AT))
    return ThresholdTest(sums.unknown @ moved, direct, gaussian)


def judge(guess: ThresholdTest, truth: GroundTruth) -> Score:
    """Scores the unlabelled sums only: no threshold is judged on the sums that it was chosen on."""
    secret: HiddenCoins = truth.answer
    claim, present, absent = secret.claim, guess.scores[secret.coins], guess.scores[~secret.coins]
    direct, gaussian = (errors_at(threshold, present, absent) for threshold in (guess.direct, guess.gaussian))
    shown = {DIRECT: _by_ratio(direct, claim.delta, truth.confidence)}
    if not claim.pure:  # the noise may be Gaussian
        shown[GAUSSIAN] = _by_shift(gaussian, claim.delta, truth.confidence)
    claimed = UNCLAIMED if claim.epsilon is None else max(claim.epsilon, NOTHING)
    measures = {
        name: Estimate(found.value / claimed, found.low / claimed, found.high / claimed, found.ceiling / claimed)
        for name, found in shown.items()
    }
    curves = _curves(shown, claim, min(len(present), len(absent)), truth.confidence)
    return Score({GAUSSIAN: Proportion(0, 0), **measures}, curves=curves)


def _by_ratio(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """Each end is from an interval at half of the doubt, so both ends together hold at the given confidence."""
    confidence = corrected(confidence, 2)
    most = direct_epsilon(errors.never_wrong, delta, confidence)
    middle, high = log_ratio(*errors.smoothed(), delta), log_ratio(*errors.at_best(confidence), delta)
    return _bounded(middle, direct_epsilon(errors, delta, confidence), high, most)


def _by_shift(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """The same under the assumption that the noise is Gaussian."""
    confidence = corrected(confidence, 2)
    most = gaussian_shift(errors.never_wrong, confidence)
    high = min(shift(*errors.at_best(confidence)), most)
    mus = (shift(*errors.smoothed()), gaussian_shift(errors, confidence), high, most)
    return _bounded(*(gaussian_epsilon(mu, delta) for mu in mus))


def _bounded(value: float, low: float, high: float, most: float) -> Estimate:
    """An attacker who is never wrong shows `most` on so many sums. No upper end beyond it is known."""
    return Estimate(min(max(value, low), most), low, max(min(high, most), low), most)


def _curves(shown: dict[str, Estimate], claim: SumClaim, runs: int, confidence: float) -> tuple[Curve, ...]:
    """Over the claimed epsilon: what was surely shown, and what an ideal attacker would show of honest noise."""
    if claim.epsilon is None:
        return ()
    curves: tuple[Curve, ...] = ()
    for name, found in shown.items():
        assumed, best = name.split(", ")[1], ideal_direct if name == DIRECT else ideal_gaussian

        def ideal(epsilon: float, best: Callable[..., float] = best) -> float:
            if claim.pure:
                return ideal_pure(runs, epsilon, claim.delta, corrected(confidence, 2))
            return best(runs, gaussian_mu(epsilon, claim.delta), claim.delta, corrected(confidence, 2))

        label = f"an ideal attacker, so many sums, {assumed}, on average"
        curves += epsilon_curves(claim.epsilon, {label: ideal}, {f"shown, {assumed}": found.low})
    return curves


def allowed(measure: str, claimed: Budget) -> float:
    """The whole epsilon that one sum claims."""
    return 1.0


MANY_RUN_EPSILON = Attack(
    name="many_run_epsilon",
    title="Whether one noised sum shows more than its epsilon",
    citation=(
        "Jagielski, Ullman and Oprea 2020 (arXiv 2006.07709): lower bounds from exact intervals; Nasr et al. 2023 "
        "(arXiv 2302.07956): by the Gaussian trade-off curve"
    ),
    cost="seconds on one core for four hundred thousand sums of forty numbers",
    given=(
        "the profile's own mechanisms, as often as it likes; one known row, ten times as long as the clip's bound; all other "
        "documents, the colluding parties' shares of noise, and that sampling chose the document"
    ),
    needs=(REQUEST,),
    models=EVERY_MODEL,
    measures={DIRECT: "epsilon that one sum claims", GAUSSIAN: "epsilon that one sum claims"},
    attack=attack,
    judge=judge,
    efforts=(RUNS,),
    pose=pose,
    allowed=allowed,
    limits=(
        "the whole run: only the accountant considers sampling, the number of rounds, and what a model keeps of its sums",
        "sums as long as the model's: these have forty numbers, and the canary changes all of them",
        "what hides the answers (masks, keys): the attack adds them in the open, and has the sum that the protocol opens",
        "mechanisms that fail for other documents than this one, or rarely",
    ),
    remark=(
        "It tests the epsilon of one sum that certainly has the document in it, computed from the mechanism's own event "
        "without sampling; where none is claimed, 1 replaces it. A share above 1 refutes the claim. The Gaussian bound assumes "
        "Gaussian noise of unknown size; for Laplace noise it is no bound."
    ),
)

MANY_RUN_PAIRS = replace(
    MANY_RUN_EPSILON,
    name="many_run_pairs",
    title="Whether the noised pairs of words with which a training begins show more than their epsilon",
    pose=partial(pose, question=PAIRS),
    questions=(PAIRS,),
)


MANY_RUN_WORDS = replace(
    MANY_RUN_EPSILON,
    name="many_run_words",
    title="Whether one noised sum of words shows more than its epsilon",
    pose=partial(pose, question=JOINT),
    given=(
        "the profile's own mechanisms, as often as it likes; one known row of a sum of words, ten times as long as the clip's "
        "bound; all other documents, and the colluding parties' shares of noise"
    ),
    limits=(
        "the sums of words together: the accountant alone composes them, and the next one depends on those before",
        "sums as long as those of words: these have forty numbers, and the canary changes all of them",
        "what hides the answers (masks, keys): the attack adds them in the open, and has the sum that the protocol opens",
        "profiles under which each party names words by itself, or none does",
    ),
)
