"""The route of one question through the mechanisms of a profile: its steps in order, with the terms before and after each.

It is compiled once per question, before any document is read. Parties, the coordinator, the accounting and attacks read it.
It adds no noise of its own, records nothing and knows no transport.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from securetm.answers.block_answers import IN_PROCESS, BlockQuestion, summed_by_blocks
from securetm.answers.block_sums import PartialSum, RowFailure
from securetm.answers.clipped_sum import ClippedRowSum, blocks_of
from securetm.contracts import (
    BLOCK_DOCUMENTS,
    IN_MEMORY,
    INF,
    Aggregation,
    Answer,
    Array,
    Cohort,
    Engine,
    Keeping,
    Mechanism,
    Memory,
    NamingQuery,
    NoiseBy,
    Noised,
    Profile,
    Query,
    RoundContext,
    Rows,
    Terms,
    Unit,
)
from securetm.data_classes import dataclass, replace
from securetm.errors import Mismatch

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class Step:
    mechanism: Mechanism
    before: Terms
    after: Terms
    cohort: Cohort

    @cached_property
    def event(self) -> DpEvent | None:
        """What one answer spends of each unit's budget at this step."""
        return self.mechanism.event(self.after, self.cohort)

    @cached_property
    def failure_probability(self) -> float:
        """The probability that one answer falls outside of that event."""
        return self.mechanism.failure_probability(self.after, self.cohort)

    @property
    def by_opener(self) -> bool:
        """Whether the role that opens the sum adds the noise of this step."""
        return self.mechanism.noise_by is NoiseBy.OPENER


@dataclass(frozen=True)
class ClippedAnswer:
    """A party's answer to one question. Only the vector may leave the party; the other fields are for its own store."""

    vector: Mapping[str, Array]
    documents: int
    loss: float
    lost: int = 0  # rows that failed, rows and coordinates that were not finite: they counted as zero
    failures: tuple[RowFailure, ...] = ()  # how rows failed


@dataclass(frozen=True)
class Route:
    """The steps of one question, and the terms that the answer is sent under."""

    asked: Terms
    steps: tuple[Step, ...]
    terms: Terms  # of what a party sends: after all mechanisms and the aggregation

    @classmethod
    def through(cls, asked: Terms, mechanisms: Collection[Mechanism], cohort: Cohort) -> Self:
        """The route through these mechanisms alone: no budget is checked, and no aggregation is asked."""
        steps, terms = [], asked
        for mechanism in mechanisms:
            steps.append(Step(mechanism, terms, mechanism.admit(terms, cohort), cohort))
            terms = steps[-1].after
        return cls(asked, tuple(steps), terms)

    @cached_property
    def row_terms(self) -> Terms:
        """The terms of the rows that the query makes of the documents as the mechanisms changed them."""
        terms = self.asked
        for step in self.steps:
            terms = step.mechanism.row_terms(terms)
        return terms

    @cached_property
    def radius(self) -> float:
        """The l2 norm that rows and gradients of losses are clipped to."""
        return min((step.mechanism.row_radius(step.before) for step in self.steps), default=INF)

    # ---- run by a party ----

    def on_documents(self, documents: Any, context: RoundContext) -> Any:
        """The documents after every step: sampled, or with noise in them."""
        for step in self.steps:
            documents = step.mechanism.on_documents(documents, step.before, context)
        return documents

    def on_rows(self, rows: Rows) -> Rows:
        for step in self.steps:
            rows = step.mechanism.on_rows(rows, step.before)
        return rows

    def answer(
        self,
        query: Query,
        documents: Any,
        context: RoundContext,
        memory: Memory,
        rng: np.random.Generator,
        engine: Engine = IN_PROCESS,
        keeping: Keeping = IN_MEMORY,
    ) -> ClippedAnswer:
        """The answer of these documents (contracts.BlockedDocuments), after every step. The engine answers their blocks.

        A batch, and a question that needs all documents at once, are one block that is answered here.
        """
        documents = self.on_documents(documents, context)
        steps = tuple((step.mechanism, step.before) for step in self.steps)
        question = BlockQuestion(query, self.row_terms, radius=self.radius, steps=steps, keeping=keeping)
        batch = self.asked.batch > 0 and len(documents) <= BLOCK_DOCUMENTS
        blocks = () if batch or self.asked.at_once else documents.blocks()
        if len(blocks) > 1:
            whole = summed_by_blocks(question, blocks, memory, engine, rng)
        else:
            whole = question.answer(documents.gathered(), memory, rng)
        if self.row_terms.names_words:
            whole = self._named(cast("NamingQuery", query), documents, whole, context)
        return self._answer_of(whole, context, len(documents))

    def empty_answer(self, context: RoundContext) -> ClippedAnswer:
        """The answer of no document; its noise is that of any other answer."""
        return self._answer_of(ClippedRowSum(self.row_terms).partial(), context, 0)

    def drawn_before(self, documents: Any, context: RoundContext) -> tuple[Mechanism, ...]:
        """The mechanisms that drew their noise for these documents before, and kept it."""
        once = (step for step in self.steps if step.mechanism.once)
        return tuple(step.mechanism for step in once if step.mechanism.remembers(documents, step.before, context))

    def _named(self, query: NamingQuery, documents: Any, whole: PartialSum, context: RoundContext) -> PartialSum:
        """The party's row about its own words, from how many owners have each."""
        counts = whole.vector
        for step in self.steps:
            counts = step.mechanism.on_named(counts, step.before, context)
        added = ClippedRowSum(self.row_terms)
        row = query.row(documents.vocabulary, counts, len(documents) - whole.failed)
        added.add(row, np.zeros(1, dtype=np.int64))
        return replace(added.partial(), lost=whole.lost, failed=whole.failed, failures=whole.failures)

    def _answer_of(self, whole: PartialSum, context: RoundContext, documents: int) -> ClippedAnswer:
        whole = whole.finite()
        vector = whole.vector
        for step in self.steps:
            vector = step.mechanism.on_vector(vector, step.after, context)
        return ClippedAnswer(blocks_of(vector, self.terms), documents, whole.loss, whole.lost, whole.failures)

    # ---- run by the role that opens the sum: the coordinator, or each party ----

    def opened(self, answer: Answer, context: RoundContext) -> Answer:
        """The opened answer, back through the steps in reverse order."""
        for step in reversed(self.steps):
            answer = step.mechanism.on_answer(answer, self.terms, context)
        return answer

    def seen_and_opened(self, answer: Answer, context: RoundContext) -> tuple[Answer, Answer]:
        """What the opening role sees before it adds noise of its own, and the opened answer."""
        opened = self.opened(answer, context)
        quiet = replace(self, steps=tuple(step for step in self.steps if not step.by_opener))
        return opened if len(quiet.steps) == len(self.steps) else quiet.opened(answer, context), opened


def compile_route(asked: Terms, profile: Profile, cohort: Cohort) -> Route:
    """The route of a question with these terms under this profile, or the refusal of the first part that does not admit it."""
    route = Route.through(asked, profile.mechanisms, cohort)
    if profile.budget is not None:
        _check_paid(route, profile.budget.unit, profile.aggregation, cohort)
    return replace(route, terms=profile.aggregation.admit(route.terms, cohort))


def _check_paid(route: Route, unit: Unit, aggregation: Aggregation, cohort: Cohort) -> None:
    """Refuses an answer that no budget covers: one that names a party's own words, of public batches, or without noise.

    Noise in the documents does not count on sampling, so batches may then be public.
    """
    terms, by_opener = route.terms, any(step.by_opener for step in route.steps)
    if terms.names_words or (terms.counts_words and not terms.multiplier):
        raise Mismatch(
            "a vocabulary made of the parties' words shows which words occur, which no epsilon covers",
            "use a public list of words (--vocabulary FILE), or a profile with word_selection",
        )
    if terms.batch and unit is not Unit.WORD:
        raise Mismatch(
            "the coordinator knows the order of the documents, so batches give no amplification, and the budget counts on it",
            'use kind = "poisson" in place of "shuffled_batches" in the profile',
        )
    if by_opener and aggregation.opened_by == "parties":
        raise Mismatch(
            "the opener of the total adds the noise, and here the parties open it, so that each of them would see the exact "
            "total",
            'add the noise at the parties: kind = "gaussian" or "noise_shares"',
        )
    if terms.noised is Noised.NOT and not by_opener:
        raise Mismatch(
            "this question would be answered exactly, which no privacy budget covers",
            "put a mechanism with noise behind the clip, or ask this question under a profile without a budget",
        )
    _check_unit(terms, unit)
    if terms.noised is Noised.SHARE and not _only_sums(aggregation, cohort):
        raise Mismatch(
            "each party adds only a share of the noise, and here somebody can see the answer of a single party",
            'add the shares under masked sums, or let each party add all the noise: kind = "gaussian"',
        )


def _check_unit(terms: Terms, unit: Unit) -> None:
    """Refuses noise that does not protect the budget's unit: a word's noise hides no document, and the other way round."""
    if unit is Unit.WORD and (terms.unit is not Unit.WORD or terms.noised is not Noised.WHOLE):
        raise Mismatch(
            "the budget protects each word occurrence, and the rows of this question are per {unit}, without noise for single "
            "words",
            'put laplace_counts before everything that reads documents, or give the profile a budget without unit = "word"',
            unit=terms.unit.value,
        )
    if terms.unit is Unit.WORD and unit is not Unit.WORD:
        raise Mismatch(
            "noise on single word occurrences hides no whole {unit}, so it does not meet a budget for each {unit}",
            'say unit = "word" in [budget], or bound each {unit}\'s row and add noise for that bound instead',
            unit=unit.value,
        )


def _only_sums(aggregation: Aggregation, cohort: Cohort) -> bool:
    """Whether nobody sees a single answer, even with as many colluding parties as the noise shares allow for."""
    colluding = [claim.colluding for claim in aggregation.claims(cohort) if claim.what == "sees only sums"]
    return aggregation.channel == "sealed" and max(colluding, default=-1) >= cohort.colluding
