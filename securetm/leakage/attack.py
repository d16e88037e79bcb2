"""The form of an attack, as plain records: what it is, what it may read, what it guesses, how its guess is judged.

A new attack is one file in `attacks/` that holds an `ATTACK`. Nothing here runs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array, State, Terms, TopicModel, Unit
from securetm.federation.questions import TRAIN
from securetm.leakage.adversary_view import AdversaryView, PublicFacts
from securetm.leakage.illustrations import Curve, Example

Effort = Mapping[str, int]  # how hard: rounds, documents, runs, as the plan says


@dataclass(frozen=True)
class ClaimedEpsilon:
    """What a run claims of its total, where it claims anything: differential privacy of that unit."""

    epsilon: float
    delta: float
    unit: str

    @property
    def of_whole_documents(self) -> bool:
        """Whether what hides that unit hides a whole document."""
        return self.unit in {unit.value for unit in (Unit.DOCUMENT, Unit.PERSON, Unit.PARTY)}


@dataclass(frozen=True)
class Challenge:
    """A question to the attack, and its answer, which only the judge gets."""

    question: Any
    answer: Any


@dataclass(frozen=True)
class TopicTables:
    """How often each word had each topic at one party in one round: as it was counted, and without noise in the words."""

    counted: Array
    real: Array


@dataclass(frozen=True)
class Canaries:
    """Made documents in the agreed words, each put among its party's own by a fair coin before the run."""

    documents: Any  # contracts.Documents
    parties: tuple[str, ...]  # who was to hold each
    coins: Array  # whether it was put there
    others: Mapping[str, Any] = field(default_factory=dict)  # party -> the documents that it trained on beside canaries


@dataclass(frozen=True)
class GroundTruth:
    """What the parties really held. The judge has it; an attack never meets it."""

    vocabulary: tuple[str, ...]
    held: Mapping[str, Any]  # party -> counts of its documents, a CSR array
    batches: Mapping[tuple[int, str], Any]  # round and party -> counts of the documents that took part
    tables: Callable[[int, str], TopicTables] | None = None  # of models that count: what a party's answer was made of
    others: Mapping[str, Any] = field(default_factory=dict)  # party -> counts of documents it never trained on
    answer: Any = None  # to the question that was put to the attack
    helpers: tuple[str, ...] = ()  # parties that help the adversary: what is theirs is nothing to recover
    confidence: float = 0.95  # of intervals that a judge makes itself
    reachable: float = 1.0  # the share of documents that took part in a round, where secret coins chose them
    public: PublicFacts | None = None  # how the run was set up
    canaries: Canaries | None = None  # made documents that were put among the parties' own, or were not
    claimed: ClaimedEpsilon | None = None  # what the run claims of its total
    sentences: Mapping[str, Any] = field(default_factory=dict)  # party -> counts of its sentences, where words have an order

    def batch(self, serial: int, party: str) -> Any:
        """The documents of one party in one round."""
        return self.batches[serial, party]

    def in_round(self, serial: int) -> Any:
        """The documents of all parties in one round."""
        return sparse.csr_array(sparse.vstack([counts for (at, _), counts in self.batches.items() if at == serial]))


@dataclass(frozen=True)
class Proportion:
    """So many successes in so many independent tries: the frame makes the exact interval."""

    hits: int
    of: int
    doubt: float = 1.0  # the part of all doubt (1 - confidence) that is left for it, where a judge spent some already


@dataclass(frozen=True)
class Estimate:
    """A measure that is no share, with the interval and the ceiling that the attack's own theory gives."""

    value: float
    low: float
    high: float
    ceiling: float


@dataclass(frozen=True)
class Score:
    """What a guess was worth, by measure, with a few examples and curves."""

    measures: Mapping[str, Proportion | Estimate]
    examples: tuple[Example, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class Attack:
    """One way to try a claim.

    Before it guesses, the judge may `pose` a question (it knows the truth and a generator), and the attack `prepare` what
    depends on public facts and the question alone, once for the run and its control. Where a run claims differential privacy,
    `allowed` says how much of a measure that claim allows: only beyond it is the claim refuted.
    """

    name: str
    title: str
    citation: str
    cost: str
    given: str  # what it knows beside the channels
    needs: tuple[str, ...]  # channels that it cannot do without
    either: tuple[str, ...]  # channels of which it needs one, and reads all that are granted
    models: tuple[str, ...]
    measures: Mapping[str, str]  # each measure's name and the unit that it counts
    attack: Callable[[AdversaryView, Effort], Any]
    judge: Callable[[Any, GroundTruth], Score]
    efforts: tuple[str, ...] = ()  # what a plan must say of how hard it tries, beside rounds
    questions: tuple[str, ...] = (TRAIN,)  # whose rounds it reads
    pose: Callable[[GroundTruth, Effort, np.random.Generator], Challenge] | None = None
    prepare: Callable[[AdversaryView, Effort], Any] | None = None
    allowed: Callable[[str, ClaimedEpsilon], float] | None = None
    malicious_vector: Callable[[Array, Terms], Array] | None = None  # what a lying party sends in place of its own flat vector
    malicious_state: Callable[[State, TopicModel, Effort], State] | None = (
        None  # what a lying coordinator shows in place of its state
    )
    limits: tuple[str, ...] = ()  # what it cannot do, said in the report
    remark: str = ""  # what a reader should know beside the figures


# ---- what several attacks judge alike ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reconstruction:
    """What an attack says was in one round of one party, or of all (party "")."""

    serial: int
    party: str
    documents: tuple[Array, ...] = ()
    words: Array | None = None
    groups: tuple[Array, ...] = ()


def held_in(guess: Reconstruction, truth: GroundTruth) -> Array:
    """The documents that a guess is about, as dense counts."""
    counts = truth.batch(guess.serial, guess.party) if guess.party else truth.in_round(guess.serial)
    return np.asarray(counts.todense())
