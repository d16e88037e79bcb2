"""Makes one noised sum many times with a profile's own mechanisms, with and without one canary. It attacks nothing.

Every step of the route is the profile's own and draws from the operating system. Only the sum is shorter, and it has no other
document in it. So it shows all that noise leaves of one document to an attacker who knows all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.accounting.composition import total
from securetm.accounting.pure import basic_epsilon
from securetm.accounting.spends import leaves_of
from securetm.auditing.adversary_view import PublicFacts
from securetm.auditing.parts.memory_store import MemoryStore
from securetm.contracts import (
    INF,
    Answer,
    Array,
    Block,
    ClippedSum,
    Cohort,
    Domain,
    Mechanism,
    Memory,
    Needs,
    Noised,
    RoundContext,
    Terms,
    Unit,
)
from securetm.entropy import OperatingSystem
from securetm.federation.budget.prices import spend_of
from securetm.federation.questions import PAIRS, TRAIN, Questions
from securetm.mechanisms.noise_shares import honest_shares
from securetm.models.given_documents import BagOfWords
from securetm.models.word_sums import WordSums
from securetm.plans.profiles import cohort_of
from securetm.route import Route, Step, compile_route

NAME = "canary"
NUMBERS = 40  # in a sum at most: more than a bounded row of counts may have, so this bound is tested as well
TOO_LONG = 10.0  # times the clip's bound, so the clip is tested as well
DELTA = 1e-5  # of the epsilon that is stated where nothing is claimed
_AT_ONCE = 1 << 15  # sums in one vector
_SLOTS = 1 << 14  # with the noise of one secret
_WORDS = 16  # words that a slot's noise is drawn over


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
    def of_training(cls, public: PublicFacts, words: tuple[str, ...]) -> Self:
        """For the training's question, shortened, and without sampling, so no coin leaves the canary out."""
        questions = Questions(public.agreement)
        questions.adopt(words)
        state = public.model.for_party(public.model.start(words, np.random.default_rng(0)), public.members[0])
        return cls._short(public, questions.make(TRAIN, state).terms)

    @classmethod
    def of_start(cls, public: PublicFacts, words: tuple[str, ...]) -> Self:
        """For the question about pairs of words before the training, with the noise that its share of the budget pays for."""
        questions = Questions(public.agreement)
        questions.adopt(words)
        return cls._short(public, questions.make(PAIRS, {}).terms)

    @classmethod
    def of_words_found(cls, public: PublicFacts, words: tuple[str, ...]) -> Self:  # noqa: ARG003 - the sums find them
        """For the question by which words are found in noised sums, whether or not the run asked it."""
        return cls._short(public, WordSums().terms)

    @classmethod
    def _short(cls, public: PublicFacts, terms: Terms) -> Self:
        short = (Block(NAME, (min(terms.size, NUMBERS),)),)
        asked = replace(terms, layout=short, batch=0, needs=Needs.SUM, ragged=False)
        return cls(public, asked, cohort_of(public.profile, public.members))

    @cached_property
    def route(self) -> Route:
        """The question's route through the profile."""
        return compile_route(self.asked, self.public.profile, self.cohort)

    @property
    def of_words(self) -> bool:
        """Whether single words are protected: then noise is drawn over slots of words, and not over sums."""
        return self.route.terms.unit is Unit.WORD

    @property
    def width(self) -> int:
        """How many numbers an opened sum has."""
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
        """So many independent opened sums, one a row."""
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
        query, documents = _CanaryQuery(self.asked, _row(self.asked, self.route.terms)), _canary_documents(int(present))
        answer = longer.answer(query, documents, self._context(), {}, np.random.default_rng(0))
        vector = np.asarray(answer.vector[NAME])
        return vector.astype(np.int64) if vector.dtype.kind == "i" else vector

    def _context(self) -> RoundContext:
        return RoundContext(self.cohort, OperatingSystem(), MemoryStore())

    # ---- slots of words ----

    def _slots(self, n: int, present: bool) -> Array:
        """Slots with their word, or without it. One secret gives all of them their noise."""
        documents = _canary_documents(1, np.full(n, 0 if present else -1, dtype=np.int32))
        documents = self.route.on_documents(documents, self._context())
        ends, words, weights = documents.perturbed.between(0, n)
        table = np.zeros((n, _WORDS), dtype=np.float32)
        table[np.repeat(np.arange(n), np.diff(ends)), words] = weights
        return table


def _row(asked: Terms, admitted: Terms) -> Array:
    """The canary's row: the same number at every place, and longer than the bound, if there is one."""
    if asked.domain is Domain.INTEGER:
        return np.full((1, asked.size), 1 if admitted.linf == INF else int(TOO_LONG * admitted.linf))
    step = admitted.grid or 1.0
    length = 1.0 if admitted.l2 == INF else TOO_LONG * admitted.l2 * step
    return np.full((1, asked.size), length / asked.size**0.5)


@dataclass(frozen=True)
class _CanaryQuery:
    """The question. Its answer is the canary's row, if the canary is there."""

    terms: Terms
    row: Array

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the canary's row, if the canary is there."""
        if len(documents):
            clipped_sum.add(self.row, np.zeros(1, dtype=np.int64))


@dataclass(frozen=True)
class _RepeatedVector(Mechanism):
    """Lays equal vectors end to end, so that the steps after it draw for each of them."""

    times: int

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:  # noqa: ARG002
        """The sum before any rounding or noise, several times."""
        return np.tile(vector, self.times)


def _canary_documents(n: int, tokens: Array | None = None) -> Any:
    """A document that is there or not, and for slots the words in it (contracts.Documents)."""
    none, words = sparse.csr_array((n, _WORDS), dtype=np.int64), tuple(f"word{n}" for n in range(_WORDS))
    ends = None if tokens is None else np.array([len(tokens)], dtype=np.int64)
    return BagOfWords(none, words, np.arange(n, dtype=np.uint64), tokens, ends, persons=np.arange(n))
