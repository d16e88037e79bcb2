"""What a mechanism is: it changes what is learned from a sum. It sees no network and no other party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from securetm.contracts.terms import INF, Answer, Array, Claim, Cohort, Rows, Terms

if TYPE_CHECKING:  # dp_accounting takes longer to import than `securetm --help` may take in all
    from dp_accounting import DpEvent


class Entropy(Protocol):
    """Privacy-critical randomness from the operating system; never the model's rng."""

    def bytes(self, n: int) -> bytes: ...


class Store(Protocol):
    """A role's small durable memory: `put` is on disk before it returns."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...


@dataclass(frozen=True)
class RoundContext:
    """What one role has at hand in one round."""

    cohort: Cohort
    entropy: Entropy
    store: Store
    lasting: Store | None = None  # what outlives the run; kept beside the ledger


class Mechanism(Protocol):
    """Changes WHAT is learned. A hook that a mechanism does not define changes nothing."""

    @property
    def once(self) -> bool:
        """Whether its noise is drawn once per corpus and kept, so that its event is spent then and never again."""
        return False

    def remembers(self, documents: Any, terms: Terms, context: RoundContext) -> bool:
        """Whether its noise for these documents was drawn before; only of a mechanism that draws once."""
        return False

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset()

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms after this mechanism, or a refusal, before any document is read."""
        return terms

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """What one answer spends of each unit's budget; the terms are those after this mechanism."""
        return None

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The probability that one answer falls outside of its event: tails cut off, rare words let through."""
        return 0.0

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        return documents

    def row_terms(self, terms: Terms) -> Terms:
        """The terms of the rows that the changed documents give: noise in the documents may leave no count whole."""
        return terms

    def row_radius(self, terms: Terms) -> float:
        """Rows and gradients of losses are clipped to this l2 norm."""
        return INF

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        return rows

    def on_named(self, sums: Array, terms: Terms, context: RoundContext) -> Array:
        """Sums over words that only this party knows, before they are named; 0 for a word that must not be."""
        return sums

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return vector

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        return answer
