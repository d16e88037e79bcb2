"""How much epsilon one whole run shows: fair coins decide which canaries take part, and the attack guesses the coins.

One run gives only a low bound: the number of canaries limits even the bound of an attacker who is never wrong.
`one_run_epsilon` detects a run that protects nothing. `one_run_curve` assumes more, and detects noise that is half of what it
should be; where its assumptions fail, its bounds may lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.special import nctdtr, ndtr, ndtri

from securetm.answers.route import Route
from securetm.auditing.attack import EVERY_MODEL, Attack, Challenge, Effort, Estimate, GroundTruth, Score
from securetm.auditing.parts.empirical_epsilon import (
    epsilon_curves,
    gaussian_epsilon,
    gaussian_mu,
    ideal_correct,
    ideal_one_run,
    least,
    never_wrong_one_run,
    one_run_epsilon,
    right_guesses,
)
from securetm.auditing.record import Curve
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import ANSWER, MODEL, TOTAL, AdversaryView, NotTestable, party_vectors, questions_in, totals
from securetm.contracts import Array, Budget, ClippedSum, Losses, Memory
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake
from securetm.federation.questions import PAIRS, Questions
from securetm.plans.profiles import cohort_of

# ---- how much of each canary's row is in what an adversary saw ------------------------------------------------------
# It guesses nothing and knows no bound. The adversary knows every other document, as differential privacy assumes.

BLOCKS = ("counts", "pairs")  # in the state of a model that is a sum of documents' rows


@dataclass(frozen=True)
class CanaryCandidates:
    """Documents that a party may have got, and the party of each."""

    documents: Any  # contracts.Documents, in the agreed words
    parties: tuple[str, ...]
    others: Mapping[str, Any]  # party -> its other training documents: differential privacy assumes that these are known
    confidence: float  # of the judge's interval: the best number of guesses depends on it


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about every canary. The answer is which of them took part."""
    assert truth.canaries is not None  # the plan of such a trial says how many
    found = truth.canaries
    return Challenge(CanaryCandidates(found.documents, found.parties, found.others, truth.confidence), found.coins)


def canary_scores(view: AdversaryView) -> Array:
    """How much of each canary's row is in the tables, after the rows of all other documents are subtracted.

    Least squares with a term for noise solve for all rows at once, so no canary's part counts for another canary.
    """
    candidates: CanaryCandidates = view.question
    seen, owners, scores = _tables(view), np.array(candidates.parties), np.zeros(len(candidates.parties))
    # canaries by party where the parties' own answers are read, else all together
    speaking = {one.party for one in party_vectors(view)} if ANSWER in view.seen else set()
    groups = {name: np.flatnonzero(owners == name) for name in sorted(speaking) if (owners == name).any()}
    if not speaking:
        groups = {"": np.arange(len(owners))}
    for name, members in groups.items():
        beside = [candidates.others[name]] if name else list(candidates.others.values())
        whole = (_rows(view, documents) for documents in (candidates.documents, *beside))
        canaries, *others = ([one for one in rows if (one[0], name) in seen] for rows in whole)  # a round may have failed
        tables = [seen[serial, name] for serial, _ in canaries]
        left = [table - sum(rows[at][1].together() for rows in others) for at, table in enumerate(tables)]
        each = [rows.each()[members] for _, rows in canaries]
        inner, noise = sum((part @ part.T).toarray() for part in each), float(np.mean(np.square(np.concatenate(left))))
        together = sum(part @ rest for part, rest in zip(each, left, strict=True))
        scores[members] = np.linalg.solve(inner + 4 * noise * np.eye(len(inner)), together)  # more noise moves them towards 0
    return scores


def _tables(view: AdversaryView) -> Mapping[tuple[int, str], Array]:
    """What rows of documents add up to, by round and party: of answers in the clear, else of sums, else of the next state."""
    if found := {(one.round.serial, one.party): _flat(one.blocks) for one in party_vectors(view)}:
        return found
    if TOTAL in view.seen:
        return {(one.round.serial, ""): _flat(one.blocks) for one in totals(view)}
    questions = list(questions_in(view).values())
    after = [*(question.state for question in questions[1:]), view.model_state()]
    name = next((name for name in BLOCKS if name in after[-1]), "")
    if any(len(question.terms.layout) > 1 for question in questions) or not name:
        raise NotTestable("the model is no sum of documents' rows, so nothing can be subtracted from it")
    return {(question.serial, ""): _flat({name: state[name]}) for question, state in zip(questions, after, strict=True)}


def _flat(blocks: Mapping[str, Array]) -> Array:
    """The numbers of all blocks, as a row of a document has them."""
    return np.concatenate([np.asarray(block, dtype=np.float64).ravel() for block in blocks.values()])


def _rows(view: AdversaryView, documents: Any) -> Iterator[tuple[int, _ClippedRows]]:
    """The documents' rows in each round, clipped as a party would. Draws of topics are public, so they can be repeated."""
    questions, profile = Questions(view.public.agreement), view.public.profile
    questions.adopt(view.vocabulary())
    memory: Memory = {}
    for question in questions_in(view).values():
        query = questions.make(question.question, question.state)
        recorder = _ClippedRows(Route.through(query.terms, profile.mechanisms, cohort_of(profile, view.public.members)))
        query.answer(documents, cast("ClippedSum", recorder), memory, np.random.default_rng(0))  # it adds rows or losses
        yield question.serial, recorder


class _ClippedRows:
    """Stands in for a clipped sum (contracts.ClippedSum), and keeps the rows, or the losses whose gradients they are."""

    def __init__(self, route: Route) -> None:
        self._route, self._factors = route, np.zeros(0)
        self._rows: Any = None
        self._losses: Losses | None = None

    def add(self, rows: Any, owners: Array) -> None:  # noqa: ARG002 - row i is that of document i
        self._rows = sparse.csr_array(self._route.on_rows(sparse.csr_array(rows))).astype(np.float64)

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:  # noqa: ARG002 - nothing stands beside
        """Keeps the losses, and by how much each row is scaled down."""
        lengths = losses.norms(owners)
        self._losses = losses
        self._factors = np.minimum(1.0, self._route.radius / np.maximum(lengths, np.finfo(np.float64).tiny))

    def each(self) -> Any:
        if self._losses is None:
            return self._rows
        scaled = np.diag(self._factors)
        return sparse.csr_array(sparse.vstack([sparse.csr_array(self._losses.gradient(one)[None]) for one in scaled]))

    def together(self) -> Array:
        found: Array = self._rows.sum(axis=0) if self._losses is None else self._losses.gradient(self._factors)
        return found


# ---- bounds by the trade-off curve of the claim, and by Gaussian scores ---------------------------------------------
# Each bound assumes more than `empirical_epsilon.one_run_epsilon`, and shows more. Pure statistics: it reads no message.
#
# The bound by the curve is that of Mahloujifar, Melis and Chaudhuri (arXiv 2410.22235). Take a guess that is right when `j` are
# right in all. With this canary's coin turned, the same guess is wrong, and `j - 1` are right. So the chance of the first is at
# most `1 - f(chance of the second)`, where `f` is the trade-off curve of the run: here that of Gaussian noise (Dong et al.
# 2019). Guesses may depend on each other. The bound by scores takes them as independent and Gaussian, as Agrawal et al. do
# (arXiv 2606.12733); it is our own: the shift of a two-sample t statistic.


MOST_SHIFT = 20.0  # the largest shift that is stated: an epsilon of 287 at a delta of 1e-5
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)  # of the canaries, to guess about
FAULT = 2.0  # guesses are chosen for an attacker of a run with half of the noise that it claims


# ---- by the trade-off curve ----------------------------------------------------------------------------------------


def curve_refutes(canaries: int, guesses: int, correct: int, mu: float, doubt: float) -> bool:
    """Whether a run under the Gaussian curve of `mu` has so many right guesses, or more, with a chance below `doubt`.

    Suppose that this chance is `doubt`. `right` is the sum of j P(j)/m over numbers of right guesses from `j` on, and `wrong`
    that of (guesses - j) P(j)/m. The curve says how much `wrong` must grow below each `j`. If all probabilities come to more
    than 1, there is no such run.
    """
    if guesses == 0:
        return False
    whole = guesses / canaries
    right, wrong = doubt * correct / canaries, doubt * (guesses - correct) / canaries
    for j in range(correct - 1, -1, -1):
        if right + wrong > whole:
            return True
        least = max(wrong, float(ndtr(ndtri(min(right, 1.0)) - mu)))
        right += (least - wrong) * j / (guesses - j)
        wrong = least
    return right + wrong > whole


def curve_shift(canaries: int, guesses: int, correct: int, confidence: float) -> float:
    """A lower bound of the shift `mu` of a run whose trade-off curve is Gaussian; 0 if chance explains the guesses."""
    doubt = 1 - confidence
    return least(lambda mu: not curve_refutes(canaries, guesses, correct, mu, doubt), MOST_SHIFT)


def likeliest_shift(canaries: int, guesses: int, share: float) -> float:
    """The shift at which an ideal attacker has this share of right guesses, on average."""
    return least(lambda mu: ideal_correct(canaries, guesses, mu) >= share * guesses, MOST_SHIFT)


def ideal_curve(canaries: int, guesses: int, mu: float, confidence: float) -> float:
    """The bound of an ideal attacker of a run of this shift, from its average number of right guesses."""
    return curve_shift(canaries, guesses, ideal_correct(canaries, guesses, mu), confidence)


def best_guesses(canaries: int, epsilon: float, delta: float, confidence: float) -> int:
    """About how many canaries to guess, so that an ideal attacker shows most if the noise is half of what it should be."""
    mu = FAULT * gaussian_mu(epsilon, delta)
    tried = sorted({max(2, 2 * round(canaries * share / 2)) for share in _SHARES})
    possible = [guesses for guesses in tried if guesses <= canaries]
    return max(possible, key=lambda guesses: ideal_curve(canaries, guesses, mu, confidence), default=0)


# ---- by scores that are Gaussian -----------------------------------------------------------------------------------


def score_shift(scores: Array, coins: Array, confidence: float) -> tuple[float, float, float]:
    """An estimate of the shift of the scores of canaries that took part, in deviations, with a lower and an upper bound.

    Each bound holds at this confidence, if the scores are independent and Gaussian with one deviation: then the two-sample t
    statistic is noncentral, with the shift times the root of in * out / all.
    """
    present, absent = scores[coins], scores[~coins]
    both = len(present), len(absent)
    if min(both) < 2:
        return 0.0, 0.0, MOST_SHIFT
    within = float(np.square(present - present.mean()).sum() + np.square(absent - absent.mean()).sum())
    apart, free = float(present.mean() - absent.mean()), sum(both) - 2
    deviation = math.sqrt(within / free)
    shift = apart / deviation if deviation > 0 else math.copysign(math.inf, apart) if apart else 0.0
    root = math.sqrt(both[0] * both[1] / sum(both))
    low, high = (_noncentral(shift * root, free, chance) / root for chance in (confidence, 1 - confidence))
    return min(max(shift, low), max(high, low)), low, max(high, low)


def _noncentral(statistic: float, free: int, chance: float) -> float:
    """The noncentrality, from 0 on, at which such a statistic or a smaller one has this chance. It falls in the chance."""
    most = MOST_SHIFT * math.sqrt(free + 2) / 2
    if statistic > 2 * most:
        return most
    return least(lambda center: not nctdtr(free, center, statistic) >= chance, most)


def ideal_scores(canaries: int, mu: float, confidence: float) -> float:
    """The bound of an ideal attacker of a run of this shift by scores, from the average statistic."""
    half, root = canaries // 2, math.sqrt(canaries) / 2
    return _noncentral(mu * root, 2 * half - 2, confidence) / root if half > 1 else 0.0


# ---- one_run_epsilon ------------------------------------------------------------------------------------------------

SHOWN = "epsilon shown in one run"
_ABOUT = (8.0, 1e-5)  # the epsilon and delta for which guesses are chosen where none is claimed


def guess_extremes(scores: Array, half: int) -> Array:
    """Guesses about so many of the highest scores, and as many of the lowest: 1 took part, -1 did not, 0 is no guess."""
    guesses, order = np.zeros(len(scores), dtype=np.int64), np.argsort(scores, kind="stable")
    guesses[order[len(scores) - half :]] = 1
    guesses[order[:half]] = -1
    return guesses


def guess_coins(view: AdversaryView, effort: Effort) -> Array:
    """Guesses about the canaries with the highest and lowest scores, of a run without a budget about all."""
    scores, budget = canary_scores(view), view.public.profile.budget
    if budget is None:
        return guess_extremes(scores, len(scores) // 2)
    sure = corrected(view.question.confidence, 2)
    return guess_extremes(scores, ideal_one_run(len(scores), budget.epsilon, budget.delta, sure)[0] // 2)


def judge_guesses(guesses: Array, truth: GroundTruth) -> Score:
    """Computes the epsilon that the right guesses show, and the most that as many canaries can show.

    Each end of the interval has half of the doubt.
    """
    coins = np.where(truth.answer, 1, -1)
    made, right = int((guesses != 0).sum()), int((guesses == coins).sum())
    delta = truth.claimed.delta if truth.claimed is not None else _ABOUT[1]
    sure = corrected(truth.confidence, 2)
    low, ceiling = one_run_epsilon(len(coins), made, right, delta, sure), never_wrong_one_run(len(coins), made, delta, sure)
    odds = (share / (1 - share) if share < 1 else math.inf for share in right_guesses(right, made, truth.confidence))
    value, high = (min(max(math.log(one), low), ceiling) for one in odds)  # the epsilon that allows such shares at delta 0
    curves: tuple[Curve, ...] = ()
    if truth.claimed is not None:
        ideal = {"an ideal attacker of one run, on average": lambda epsilon: ideal_one_run(len(coins), epsilon, delta, sure)[1]}
        curves = epsilon_curves(truth.claimed.epsilon, ideal, {"shown in one run": low})
    return Score({SHOWN: Estimate(value, low, high, ceiling)}, curves=curves)


def allowed_of_run(measure: str, claimed: Budget) -> float:
    """The run's whole epsilon, if it protects whole documents. Protection of a smaller unit says nothing of a document."""
    if not claimed.unit.whole_documents:
        raise Mistake(
            "the attack guesses at whole documents, and a claim about a {unit} says nothing of those",
            hint="try such a claim with many_run_epsilon, which tries the noise of one unit whatever it is",
            unit=claimed.unit.value,
        )
    return claimed.epsilon


ONE_RUN_EPSILON = Attack(
    name="one_run_epsilon",
    title="Which canaries took part in a run",
    citation=(
        "Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846): privacy auditing with one training run; canaries as in Nasr et "
        "al. 2023 (arXiv 2302.07956)"
    ),
    cost="a run with a few hundred documents more, and seconds on one core",
    given=(
        "every other document, every canary and its party, the parties' public draws, and of each round the noised answers, "
        "their sum, or the model made of them; never a coin"
    ),
    either=(ANSWER, TOTAL, MODEL),
    models=("lda", "lda-vi", "moments", "semantic"),
    measures={SHOWN: "epsilon"},
    bears_on=("linking", "inference"),
    attack=guess_coins,
    judge=judge_guesses,
    pose=pose,
    allowed=allowed_of_run,
    limits=(
        "noise that is half of what it should be: on average an ideal attacker's bound is below the claim even then",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found",
        "other models than those whose answers are sums of documents' own rows",
    ),
    remark=(
        "One run shows only a part of its epsilon: an ideal attacker shows about 1 of 4.4 on average at 99.9 % (the line in "
        "the plot). The ceiling is the bound of an attacker who is never wrong. So a bound below the claim says little; its "
        "distance from the line says how good this attacker is."
    ),
)


# ---- one_run_curve --------------------------------------------------------------------------------------------------

BY_CURVE = "epsilon shown in one run, if its trade-off curve is Gaussian"
BY_SCORES = "epsilon shown in one run, if canaries' scores are independent and Gaussian"


@dataclass(frozen=True)
class ScoredCanaries:
    """The score of each canary, and guesses about the highest and lowest: 1 took part, -1 did not, 0 is no guess."""

    scores: Array
    guesses: Array


def score_canaries(view: AdversaryView, effort: Effort) -> ScoredCanaries:
    """Scores the canaries, and guesses about some of them."""
    budget = view.public.profile.budget
    about = (budget.epsilon, budget.delta) if budget is not None else _ABOUT
    return guessed(canary_scores(view), *about, view.question.confidence)


def guessed(scores: Array, epsilon: float, delta: float, confidence: float) -> ScoredCanaries:
    """Guesses about as many canaries as would show most of a run with half of the noise of this claim."""
    half = best_guesses(len(scores), epsilon, delta, corrected(confidence, 2)) // 2
    return ScoredCanaries(scores, guess_extremes(scores, half))


def judge_scores(found: ScoredCanaries, truth: GroundTruth) -> Score:
    """Computes both bounds. Each end of an interval has half of the doubt."""
    coins, sure = np.asarray(truth.answer, dtype=bool), corrected(truth.confidence, 2)
    delta = truth.claimed.delta if truth.claimed is not None else _ABOUT[1]
    made, right = int((found.guesses != 0).sum()), int((found.guesses == np.where(coins, 1, -1)).sum())
    # the interval's upper end is of the shift that an ideal attacker with as many right guesses would have
    low, ceiling = (gaussian_epsilon(curve_shift(len(coins), made, hits, sure), delta) for hits in (right, made))
    likely = (likeliest_shift(len(coins), made, share) for share in right_guesses(right, made, truth.confidence))
    value, high = (min(max(gaussian_epsilon(shift, delta), low), ceiling) for shift in likely)
    by_curve = Estimate(value, low, max(value, high), ceiling)
    value, low, high = (gaussian_epsilon(shift, delta) for shift in score_shift(found.scores, coins, sure))
    by_scores = Estimate(value, low, high, gaussian_epsilon(MOST_SHIFT, delta))
    curves: tuple[Curve, ...] = ()
    if truth.claimed is not None:

        def by_curve_of(epsilon: float) -> float:
            return gaussian_epsilon(ideal_curve(len(coins), made, gaussian_mu(epsilon, delta), sure), delta)

        def by_scores_of(epsilon: float) -> float:
            return gaussian_epsilon(ideal_scores(len(coins), gaussian_mu(epsilon, delta), sure), delta)

        ideal = {
            "an ideal attacker by the curve, on average": by_curve_of,
            "an ideal attacker by scores, on average": by_scores_of,
        }
        shown = {"shown by the curve": by_curve.low, "shown by scores": by_scores.low}
        curves = epsilon_curves(truth.claimed.epsilon, ideal, shown)
    return Score({BY_CURVE: by_curve, BY_SCORES: by_scores}, curves=curves)


ONE_RUN_CURVE = replace(
    ONE_RUN_EPSILON,
    name="one_run_curve",
    title="Whether a run shows more canaries than its trade-off curve allows",
    citation=(
        "Mahloujifar, Melis and Chaudhuri 2024 (arXiv 2410.22235): auditing f-differential privacy in one run; Gaussian scores "
        "after Agrawal et al. 2026 (arXiv 2606.12733), by a noncentral t statistic"
    ),
    measures={BY_CURVE: "epsilon", BY_SCORES: "epsilon"},
    attack=score_canaries,
    judge=judge_scores,
    limits=(
        "runs whose trade-off curve is not that of Gaussian noise: the bound by the curve then tests the wrong curve",
        "scores that depend on each other, or are not Gaussian: the bound by scores then says more than it knows",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found, and other models than those whose answers are sums of documents' own rows",
    ),
    remark=(
        "Both bounds assume something of the run, and say what. An ideal attacker of a run with half of its noise shows more "
        "than the claim from about 1,000 canaries on by the curve, and from about 100 on by scores. A bound below the claim "
        "says little."
    ),
)

ONE_RUN_PAIRS = replace(
    ONE_RUN_CURVE,
    name="one_run_pairs",
    title="Which canaries took part in the pairs of words with which a training begins",
    given="every other document, every canary and its party, and the noised pairs of words, or their sum; never a coin",
    either=(ANSWER, TOTAL),
    models=EVERY_MODEL,
    questions=(PAIRS,),
    limits=(
        "the rounds after that answer, which have noise of their own: it tests what the first answer alone shows",
        "noise that is half of what it should be: on average an ideal attacker's bound is below the claim even then",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found",
    ),
)
