"""How much of each canary's row is in what an adversary saw of a run: one score a canary, whatever is made of them.

It guesses nothing and knows no bound. The adversary knows every other document, as differential privacy assumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Challenge, Effort, GroundTruth
from securetm.auditing.leakage_errors import NotTestable
from securetm.auditing.reading import ANSWER, TOTAL, party_vectors, questions_in, totals
from securetm.contracts import Array, ClippedSum, Losses, Memory
from securetm.federation.questions import Questions
from securetm.plans.profiles import cohort_of
from securetm.route import Route

BLOCKS = ("counts", "pairs")  # of a sum of documents' rows, by model


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


def canary_scores(view: AdversaryView) -> Array:
    """How much of each canary's row is in the tables, after the rows of all other documents are subtracted.

    Least squares with a term for noise solve for all rows at once, so no canary's part counts for another canary.
    """
    candidates: CanaryCandidates = view.question
    seen, groups = _tables(view), _groups(view, candidates)
    scores = np.zeros(len(candidates.parties))
    for name, members in groups.items():
        beside = [candidates.others[name]] if name else list(candidates.others.values())
        whole = (_rows(view, documents) for documents in (candidates.documents, *beside))
        canaries, *others = ([one for one in rows if (one[0], name) in seen] for rows in whole)  # a round may have failed
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
        query = questions.make(question.question, question.state)
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
