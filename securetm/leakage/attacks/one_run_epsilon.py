"""How much epsilon one whole run shows: fair coins decide which canaries take part, and the attack guesses the coins.

One run gives only a low bound: the number of canaries limits even the bound of an attacker who is never wrong. So the attack
detects a run that protects nothing. It cannot detect noise that is half of what it should be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from securetm.contracts import Array, Budget, ClippedSum, Losses, Memory
from securetm.federation.questions import TRAIN, Questions
from securetm.leakage.adversary_view import MODEL, AdversaryView
from securetm.leakage.attack import Attack, Challenge, Effort, Estimate, GroundTruth, Score
from securetm.leakage.illustrations import Curve
from securetm.leakage.intervals import of_each
from securetm.leakage.leakage_errors import NotTestable, SmallerUnit
from securetm.leakage.parts.empirical_epsilon import ideal_one_run, never_wrong_one_run, one_run_epsilon, right_guesses
from securetm.leakage.reading import ANSWER, TOTAL, party_vectors, questions_in, totals
from securetm.profiles import cohort_of
from securetm.route import Route

SHOWN = "epsilon shown in one run"
BLOCKS = ("counts", "pairs")  # of a sum of documents' rows, by model
_ABOUT = (8.0, 1e-5)  # the epsilon and delta for which guesses are chosen where none is claimed
_ACROSS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class CanaryCandidates:
    """Documents that a party may have got, and the party of each."""

    documents: Any  # contracts.Documents, in the agreed words
    parties: tuple[str, ...]
    others: Mapping[str, Any]  # party -> its other training documents: differential privacy assumes that these are known
    confidence: float  # of the judge's interval: the best number of guesses depends on it


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:  # noqa: ARG001 - the coins fell before
    """Asks about every canary. The answer is which of them took part."""
    assert truth.canaries is not None  # the plan of such a trial says how many
    found = truth.canaries
    return Challenge(CanaryCandidates(found.documents, found.parties, found.others, truth.confidence), found.coins)


def attack(view: AdversaryView, effort: Effort) -> Array:  # noqa: ARG001 - it reads all rounds that it was given
    """Guesses about the canaries with the highest and lowest scores: 1 took part, -1 did not, 0 is no guess."""
    scores, budget = _scores(view), view.public.profile.budget
    about, sure = (budget.epsilon, budget.delta) if budget is not None else _ABOUT, of_each(view.question.confidence)
    half = (ideal_one_run(len(scores), *about, sure)[0] if budget is not None else len(scores)) // 2
    guesses, order = np.zeros(len(scores), dtype=np.int64), np.argsort(scores, kind="stable")
    guesses[order[len(scores) - half :]] = 1
    guesses[order[:half]] = -1
    return guesses


# ---- scores --------------------------------------------------------------------------------------------------------


def _scores(view: AdversaryView) -> Array:
    """How much of each canary's row is in the tables, after the rows of all other documents are subtracted.

    Least squares with a term for noise solve for all rows at once, so no canary's part counts for another canary.
    """
    candidates: CanaryCandidates = view.question
    seen, groups = _tables(view), _groups(view, candidates)
    scores = np.zeros(len(candidates.parties))
    for name, members in groups.items():
        beside = [candidates.others[name]] if name else list(candidates.others.values())
        canaries, *others = (list(_rows(view, documents)) for documents in (candidates.documents, *beside))
        tables = [seen[serial, name] for serial, _ in canaries]
        left = [table - sum(rows[at][1].together() for rows in others) for at, table in enumerate(tables)]
        scores[members] = _solved([rows.each()[members] for _, rows in canaries], left)
    return scores


def _solved(rows: list[Any], left: list[Array]) -> Array:
    """The shares of these rows that best explain what is left in all rounds. More noise moves them towards 0."""
    inner = sum((part @ part.T).toarray() for part in rows)
    noise = float(np.mean(np.square(np.concatenate(left))))
    return np.linalg.solve(
        inner + 4 * noise * np.eye(len(inner)), sum(part @ rest for part, rest in zip(rows, left, strict=True))
    )


def _groups(view: AdversaryView, candidates: CanaryCandidates) -> Mapping[str, Array]:
    """Canaries by party where the parties' own answers are read, else all canaries together."""
    speaking = {one.party for one in party_vectors(view)} if ANSWER in view.seen else set()
    if not speaking:
        return {"": np.arange(len(candidates.parties))}
    owners = np.array(candidates.parties)
    return {name: np.flatnonzero(owners == name) for name in sorted(speaking) if (owners == name).any()}


def _tables(view: AdversaryView) -> Mapping[tuple[int, str], Array]:
    """Tables of counts by round and party: from answers in the clear, else from opened sums, else from the next state."""
    if found := {(one.round.serial, one.party): _table(one.blocks) for one in party_vectors(view)}:
        return found
    if TOTAL in view.seen:
        return {(one.round.serial, ""): _table(one.blocks) for one in totals(view)}
    questions = list(questions_in(view).values())
    after = [*(question.state for question in questions[1:]), view.model_state()]
    return {(question.serial, ""): _table(state) for question, state in zip(questions, after, strict=True)}


def _table(blocks: Mapping[str, Array]) -> Array:
    """The numbers that rows of documents add up to."""
    name = next((name for name in BLOCKS if name in blocks), None)
    if name is None:
        raise NotTestable("the model is no sum of documents' rows, so nothing can be subtracted from it")
    found: Array = np.asarray(blocks[name], dtype=np.float64).ravel()
    return found


def _rows(view: AdversaryView, documents: Any) -> Iterator[tuple[int, _ClippedRows]]:
    """The documents' rows in each round, clipped as a party would. Draws of topics are public, so they can be repeated."""
    questions, profile = Questions(view.public.agreement), view.public.profile
    questions.adopt(view.vocabulary())
    memory: Memory = {}
    for question in questions_in(view).values():
        query = questions.make(TRAIN, question.state)
        recorder = _ClippedRows(Route.through(query.terms, profile.mechanisms, cohort_of(profile, view.public.members)))
        query.answer(documents, cast(ClippedSum, recorder), memory, np.random.default_rng(0))  # a count's query only adds rows
        yield question.serial, recorder


class _ClippedRows:
    """Stands in for a clipped sum (contracts.ClippedSum), and keeps the rows, or the losses whose gradients they are."""

    def __init__(self, route: Route) -> None:
        self._route, self._factors = route, np.zeros(0)
        self._rows: Any = None
        self._losses: Losses | None = None

    def add(self, rows: Any, owners: Array) -> None:  # noqa: ARG002 - row i is that of document i
        """Keeps the rows, bounded."""
        self._rows = sparse.csr_array(self._route.on_rows(sparse.csr_array(rows))).astype(np.float64)

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:  # noqa: ARG002 - nothing stands beside
        """Keeps the losses, and by how much each row is scaled down."""
        lengths = losses.norms(owners)
        self._losses = losses
        self._factors = np.minimum(1.0, self._route.radius / np.maximum(lengths, np.finfo(np.float64).tiny))

    def each(self) -> Any:
        """The rows, one of each document."""
        if self._losses is None:
            return self._rows
        scaled = np.diag(self._factors)
        return sparse.csr_array(sparse.vstack([sparse.csr_array(self._losses.gradient(one)[None]) for one in scaled]))

    def together(self) -> Array:
        """The sum of the rows."""
        found: Array = self._rows.sum(axis=0) if self._losses is None else self._losses.gradient(self._factors)
        return found


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(guesses: Array, truth: GroundTruth) -> Score:
    """Computes the epsilon that the right guesses show, and the most that as many canaries can show.

    Each end of the interval has half of the doubt.
    """
    coins = np.where(truth.answer, 1, -1)
    made, right = int((guesses != 0).sum()), int((guesses == coins).sum())
    delta = truth.claimed.delta if truth.claimed is not None else _ABOUT[1]
    sure = of_each(truth.confidence)
    low, ceiling = one_run_epsilon(len(coins), made, right, delta, sure), never_wrong_one_run(len(coins), made, delta, sure)
    odds = (share / (1 - share) if share < 1 else math.inf for share in right_guesses(right, made, truth.confidence))
    value, high = (min(max(math.log(one), low), ceiling) for one in odds)  # the epsilon that allows such shares at delta 0
    curves = _curves(len(coins), truth.claimed, low, sure) if truth.claimed is not None else ()
    return Score({SHOWN: Estimate(value, low, high, ceiling)}, curves=curves)


def _curves(canaries: int, claimed: Budget, low: float, confidence: float) -> tuple[Curve, ...]:
    points = tuple(sorted({*_ACROSS, claimed.epsilon}))
    ideal = tuple(ideal_one_run(canaries, epsilon, claimed.delta, confidence)[1] for epsilon in points)
    return (
        Curve("epsilon", "an ideal attacker of one run, on average", points, ideal),
        Curve("epsilon", "shown in one run", (claimed.epsilon,), (low,)),
    )


def allowed(measure: str, claimed: Budget) -> float:  # noqa: ARG001 - there is one
    """The run's whole epsilon, if it protects whole documents. Protection of a smaller unit says nothing of a document."""
    if not claimed.unit.whole_documents:
        raise SmallerUnit("one_run_epsilon", claimed.unit.value)
    return claimed.epsilon


ATTACK = Attack(
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
    models=("lda", "lda-vi", "moments"),
    measures={SHOWN: "epsilon"},
    attack=attack,
    judge=judge,
    pose=pose,
    allowed=allowed,
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
