"""The words every part of securetm shares: what is promised, asked, answered and claimed. One page of types, no logic.

Every federated topic model learns from sums over documents. A mechanism changes WHAT is learned from the sum,
an aggregation changes WHO sees it; `Terms` travel through both, so that no privacy number is typed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # dp_accounting takes longer to import than `securetm --help` may take in all
    from dp_accounting import DpEvent

Array = NDArray[Any]
Rows = Any  # an Array or a scipy sparse matrix, one row per item; scipy ships no types
State = Mapping[str, Array]  # all that a model knows, by name: plain arrays, so it is stored and sent without pickle
Memory = dict[str, Array]  # what a party remembers between rounds (topic assignments, NMF's H); it never leaves the party
INF = float("inf")


class Domain(Enum):
    REAL = "real"
    INTEGER = "integer"


class Unit(Enum):
    """Whose presence a bound or a guarantee speaks about: one row of the sum belongs to one of these."""

    WORD = "word"
    SENTENCE = "sentence"
    DOCUMENT = "document"
    PERSON = "person"
    PARTY = "party"


class Noised(Enum):
    NOT = "not"
    SHARE = "share"  # a share of distributed noise: only the sum over enough parties is private
    WHOLE = "whole"


class Needs(Enum):
    SUM = "sum"
    EACH = "each"  # every party's own vector (iFTM's matching, a union of vocabularies): no secure sum admits it


@dataclass(frozen=True)
class Block:
    """One named array inside a vector. In ragged terms its shape is an upper bound."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What is publicly promised about a vector before any document is read."""

    layout: tuple[Block, ...]
    needs: Needs = Needs.SUM
    ragged: bool = False  # parties may send smaller first dimensions; only where the query needs each
    data_only: bool = False  # does not depend on the model's state, so it is answered once per corpus
    names_words: bool = False  # the vector spells out words that only parties know, and which words these are is private
    batch: int = 0  # documents each party is asked to draw for it; 0: all of them
    domain: Domain = Domain.REAL
    bits: int = 32  # width of one value on the wire
    grid: float = 0.0  # step of the integer grid behind a REAL vector; 0: not on a grid
    unit: Unit = Unit.DOCUMENT
    sampling: float = 1.0  # probability that a unit takes part, secret and independent; 1: no amplification
    reach: float = INF  # largest absolute value of a coordinate of one party's vector; beyond it values are clamped
    noised: Noised = Noised.NOT
    deviation: float = 0.0  # standard deviation of the noise already in every coordinate
    l1: float = INF  # bounds on one unit's row, and so on the sum's sensitivity (add or remove one)
    l2: float = INF
    linf: float = INF

    @property
    def size(self) -> int:
        """Coordinates of the flat vector (the most there can be, if ragged)."""
        return sum(int(np.prod(block.shape)) for block in self.layout)


@dataclass(frozen=True)
class Cohort:
    """The public facts of one round."""

    round_id: bytes  # binds session, number, question, terms and profile hash
    number: int  # how often this question was asked before in the session
    members: tuple[str, ...]
    threshold: int = 1
    colluding: int = 0
    seed: int = 0  # public: for batches and model noise, never for privacy
    question: bytes = b""  # names it the same in every session: a party lets it be opened over one list of survivors


@dataclass(frozen=True)
class Roster:
    """Who may take part in a session: every role holds the same, and joins under no other."""

    session: bytes  # 32 bytes, chosen for this session
    profile: bytes  # hash of the profile
    members: tuple[str, ...]
    keys: Mapping[str, bytes] = field(default_factory=dict)  # each member's pinned Ed25519 public key, 32 raw bytes


@dataclass(frozen=True)
class Answer:
    """What a round opens, block by block: the sum, or each party's own blocks where the query needs them."""

    total: Mapping[str, Array] | None
    each: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    survivors: tuple[str, ...] = ()
    deviation: float = 0.0  # standard deviation of the noise in every coordinate of the total, from what added it


@dataclass(frozen=True)
class Claim:
    """What is promised against whom, with how many parties helping the adversary."""

    what: str
    against: str
    colluding: int = 0
    unit: Unit | None = None


# ---- what a model meets --------------------------------------------------------------------------------------------


class Perturbed(Protocol):
    """The words of token slots behind noise: each slot holds weights of words, and which word it really held is nowhere in it.

    How many slots each document and each sentence has is public (`token_ends` and `sentence_ends` count slots then).
    """

    @property
    def whole(self) -> bool: ...  # weights are whole numbers
    def __len__(self) -> int: ...  # slots
    def between(self, first: int, last: int) -> tuple[Array, Array, Array]: ...  # CSR: int64 ends, int32 words, float64


class Documents(Protocol):
    """What a part may ask of a corpus. Row i of everything is document i."""

    @property
    def counts(self) -> Any: ...  # scipy CSR, documents x vocabulary
    @property
    def vocabulary(self) -> tuple[str, ...]: ...
    @property
    def keys(self) -> Array: ...  # uint64, stays with a document wherever it moves
    @property
    def tokens(self) -> Array | None: ...  # int32 word ids in reading order, documents end to end
    @property
    def token_ends(self) -> Array | None: ...  # where each document ends in `tokens`
    @property
    def sentence_ends(self) -> Array | None: ...  # where each sentence ends in `tokens`
    @property
    def embeddings(self) -> Array | None: ...
    @property
    def persons(self) -> Array | None: ...  # whose document this is, as small integers
    @property
    def perturbed(self) -> Perturbed | None: ...  # instead of tokens, where noise stands in for the words themselves
    def __len__(self) -> int: ...
    def select(self, rows: Array) -> Self: ...
    def halves(self, seed: int) -> tuple[Self, Self]: ...  # words to see and words to predict, for document completion


class Losses(Protocol):
    """One differentiable loss per document, and what a clip must know of their gradients: no row is materialised."""

    @property
    def values(self) -> Array: ...  # one loss per document; stays at the party
    def norms(self, owners: Array) -> Array: ...  # l2 norm of each owner's summed gradient, owners in sorted order
    def gradient(self, weights: Array) -> Array: ...  # sum over documents of weight x gradient, flat


class ClippedSum(Protocol):
    """All that a model ever meets of privacy: it pours rows in, bounded and summed they come out elsewhere."""

    def add(self, rows: Rows, owners: Array) -> None: ...
    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None: ...  # beside: the row's other coordinates
    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array: ...  # sums over a party's own words; 0: not named


class Query(Protocol):
    """A question whose answer is a sum of one row per document, person or party."""

    @property
    def terms(self) -> Terms: ...
    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None: ...


class TopicModel(Protocol):
    """A model as the federation sees it. It knows neither privacy nor network; all it knows is in the state."""

    @property
    def name(self) -> str: ...
    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State: ...
    def query(self, state: State) -> Query: ...
    def update(self, state: State, answer: Answer) -> State: ...
    def for_party(self, state: State, party: str) -> State: ...  # what travels to one party: no optimiser memory
    def topics(self, state: State) -> Array: ...  # topics x vocabulary, rows sum to one
    def infer(self, state: State, documents: Any) -> Array: ...  # documents x topics, rows sum to one
    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array: ...  # of unseen words given the seen


# ---- what stands at the door ---------------------------------------------------------------------------------------


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
    """Changes WHAT is learned. Each station does nothing unless a mechanism says otherwise."""

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

    def poured(self, terms: Terms) -> Terms:
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


Parcel = tuple[str, bytes]  # to whom, what


class Exchange(Protocol):
    """One role in one protocol run, sans-I/O: bytes in, bytes out; a transport carries them and a clock ticks outside.

    It goes in waves. Parties speak first (`begin`) and answer each message they `receive`; the coordinator receives what
    came in time, and `expire` ends the wave: whoever is missing has dropped out, and what it returns is the next wave.
    """

    def begin(self) -> Sequence[Parcel]: ...
    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]: ...
    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]: ...


class Seat(Protocol):
    """A role's place in a session: it outlives rounds (keys, prekeys, what was revealed) and lives in a store."""

    @property
    def prepared(self) -> int: ...  # rounds that can still be run before the next `prepare`; plain sums: without end
    def prepare(self, rounds: int) -> Exchange: ...
    def round(self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None) -> Exchange: ...
    def answer(self, round_id: bytes) -> Answer: ...  # or a refusal, if this role does not open it


class Aggregation(Protocol):
    """Changes WHO sees it; the sum stays, within a stated error."""

    @property
    def opened_by(self) -> str: ...  # "coordinator" or "parties"
    @property
    def channel(self) -> str: ...  # what the transcript calls a party's messages: "answer" in the clear, else "sealed"
    def claims(self, cohort: Cohort) -> frozenset[Claim]: ...
    def admit(self, terms: Terms, cohort: Cohort) -> Terms: ...
    def error(self, terms: Terms, cohort: Cohort) -> float:
        """The largest error of one coordinate of the sum: absolute on a grid, else relative to the largest partial sum."""
        ...

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The fewest parties whose sum anybody sees, for a cohort among so many that joined; a party enforces it."""
        ...

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """The most bytes of one message from a party and of one to it: in a round with these terms, or in a set-up."""
        ...

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> Seat: ...  # its key: "identity"
    def coordinator(self, roster: Roster, store: Store) -> Seat: ...


# ---- what is required ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Adversary:
    name: str
    behaviour: str
    sees: tuple[str, ...]  # channels of the transcript
    colludes_with_parties: int = 0


@dataclass(frozen=True)
class Requirement:
    claim: Claim
    because: str


@dataclass(frozen=True)
class ThreatModel:
    """Who is feared, what each sees, what is required of a profile, and what is knowingly left open."""

    name: str
    title: str
    adversaries: tuple[Adversary, ...]
    requires: tuple[Requirement, ...]
    accepts: tuple[tuple[str, str], ...] = ()  # what, and the reason
    out_of_scope: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    unit: Unit
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Profile:
    """A named choice of mechanisms, aggregation, threat model and budget. Its digest is in every round id."""

    name: str
    title: str
    threat_model: str
    mechanisms: tuple[Mechanism, ...]
    aggregation: Aggregation
    vocabularies: tuple[str, ...]  # the sources of a vocabulary that this profile allows
    digest: bytes
    minimum_parties: int = 2
    minimum_documents: int = 1  # in any sum, or held where coins choose; each party enforces its part of it
    threshold: int = 1  # parties that must remain in a sum, and
    threshold_share: float = 0.0  # the share of the cohort that must; the larger counts
    colluding: int = 0
    budget: Budget | None = None
    danger: str = ""  # said in red wherever the profile is shown
