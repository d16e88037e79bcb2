"""The contract of a mechanism: it changes what can be learned from a sum. It sees no network and no other party."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from securetm.contracts.terms import INF, Answer, Array, Claim, Cohort, Rows, Terms

if TYPE_CHECKING:  # dp_accounting takes longer to import than `securetm --help` may take in all
    from dp_accounting import DpEvent


class Entropy(Protocol):
    """Privacy-critical randomness from the operating system; never the model's rng."""

    def bytes(self, n: int) -> bytes: ...


class Store(Protocol):
    """A role's small durable store: what `put` was given is on disk when it returns."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...


@dataclass(frozen=True)
class RoundContext:
    """What the mechanisms of one role can use in one round."""

    cohort: Cohort
    entropy: Entropy
    store: Store
    lasting: Store | None = None  # outlives the run, and is kept beside the ledger
    computed: dict[str, Any] = field(default_factory=dict)  # what a mechanism computed and may use again in this process
    surplus: list[bytes] = field(default_factory=list)  # what reveals each part of the noise that a large sum does not need


class NoiseBy(Enum):
    """Who adds the noise of a mechanism."""

    NOBODY = "nobody"
    PARTY = "party"  # each party adds noise that is enough by itself
    SHARES = "shares"  # each party adds a share; only the sum over enough parties is private
    OPENER = "opener"  # the role that opens the sum adds it, and sees the sum without it


class Sampling(Enum):
    """How a mechanism chooses the documents that take part in a round."""

    NONE = "none"
    PUBLIC = "public"  # in an order that everybody knows, which amplifies no privacy
    COINS = "coins"  # by the party's own coins


@dataclass(frozen=True)
class NamingThreshold:
    """In how many documents a word must be to be named: of one party, or of all parties together where they are summed."""

    threshold: int  # a word in no more documents than this is named only if the noise is large
    found_from: int  # a word in so many documents is named in 99 of 100 selections
    together: bool = False

    @property
    def whose(self) -> str:
        """Whose documents these are."""
        return "all parties together" if self.together else "one party"


@dataclass(frozen=True)
class CountNoise:
    """What noise adds to one count on average, and the grid of sums of noised counts: 0 where they are whole numbers."""

    mean: float = 0.0
    grid: float = 0.0


class Mechanism(Protocol):
    """Changes what is learned from a sum. It is a frozen dataclass, whose fields are its settings in a profile.

    Every member has a default. A mechanism declares what it does, and overrides the methods in which it does something.
    """

    noise_by: ClassVar[NoiseBy] = NoiseBy.NOBODY
    sampling: ClassVar[Sampling] = Sampling.NONE
    once: ClassVar[bool] = (
        False  # whether its noise is drawn once per corpus and kept: its event is spent then, and never again
    )
    mixes: ClassVar[bool] = False  # whether each coordinate of its vector depends on all coordinates of the sum
    plan_numbers: ClassVar[Mapping[str, str]] = {}  # a plan's [privacy] numbers that replace settings, each with its setting

    @property
    def drawn_epsilon(self) -> float:
        """The epsilon that noise which is drawn once spends at that moment."""
        return 0.0

    def naming_threshold(self) -> NamingThreshold | None:
        """The threshold of a mechanism that selects words; nothing of any other."""
        return None

    def count_noise(self, words: int) -> CountNoise | None:
        """What its noise in the documents adds to each of so many counts; nothing if it leaves the documents' words alone."""
        return None

    def total_deviation(self, terms: Terms) -> float:
        """The standard deviation of noise that is added to the opened sum, in the units of the vector that parties send."""
        return 0.0

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
