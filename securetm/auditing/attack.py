"""The contract of an attack: what it reads, what it estimates, and how its estimate is scored against the ground truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.auditing.record import Curve, Example
from securetm.auditing.views import REQUEST, VOCABULARY, AdversaryView, PublicFacts
from securetm.contracts import Array, Budget, State, Terms, TopicModel
from securetm.data_classes import dataclass, field
from securetm.errors import Failed
from securetm.federation.questions import TRAIN

EVERY_MODEL = ("*",)  # in place of names: the attack reads nothing that depends on the model

Effort = Mapping[str, int]  # the plan's limits by name: how many rounds, documents or runs the attack may use


@dataclass(frozen=True)
class Challenge:
    """A question for the attack, and the answer, which only the judge sees. `redrawn` makes the question of the control."""

    question: Any
    answer: Any
    redrawn: Callable[[np.random.Generator], Any] | None = None


@dataclass(frozen=True)
class TopicTables:
    """How often each word had each topic at one party in one round: with noise in the words, and without."""

    counted: Array
    real: Array


@dataclass(frozen=True)
class Canaries:
    """Artificial documents in the agreed words. A fair coin decided before the run whether a party got each of them."""

    documents: Any  # contracts.Documents
    parties: tuple[str, ...]  # the party of each canary
    coins: Array  # whether the party got it
    others: Mapping[str, Any] = field(default_factory=dict)  # party -> its training documents without the canaries


@dataclass(frozen=True)
class GroundTruth:
    """What the parties really held. Only the judge reads it."""

    vocabulary: tuple[str, ...]
    held: Mapping[str, Any]  # party -> counts of its training documents, a CSR array
    batches: Mapping[tuple[int, str], Any]  # (round, party) -> counts of the documents that took part
    tables: Callable[[int, str], TopicTables] | None = None  # (round, party) -> the tables behind the answer of a matched model
    others: Mapping[str, Any] = field(default_factory=dict)  # party -> counts of its held-out documents
    answer: Any = None  # to the challenge
    helpers: tuple[str, ...] = ()  # colluding parties; their documents do not count as recovered
    confidence: float = 0.95  # of the intervals that a judge computes itself
    reachable: float = 1.0  # the share of documents that took part in a round, where secret coins chose them
    public: PublicFacts | None = None  # how the run was set up
    canaries: Canaries | None = None
    claimed: Budget | None = None  # the epsilon that the run claims for its whole training
    sentences: Mapping[str, Any] = field(default_factory=dict)  # party -> counts of its sentences, where words have an order
    worked: Mapping[tuple[int, str], int] = field(default_factory=dict)  # (round, party) -> words that took part
    embeddings: Mapping[str, Array] = field(default_factory=dict)  # party -> those of its training documents, where it has any
    other_embeddings: Mapping[str, Array] = field(default_factory=dict)  # party -> those of its held-out documents
    every_word: Callable[[], Mapping[str, int]] | None = None  # documents of all parties with each word
    drawn: Mapping[tuple[int, str], Array] = field(default_factory=dict)  # (round, party) -> rows of `held` that took part

    def batch(self, serial: int, party: str) -> Array:
        """The documents of one party (of all parties for party "") in one round, as dense counts."""
        there = [counts for which, counts in self.batches.items() if which[0] == serial and party in ("", which[1])]
        return np.asarray(stacked([sparse.csr_array((0, len(self.vocabulary)), dtype=np.int64), *there]).todense())

    def all_of(self, party: str) -> sparse.csr_array:
        """All documents of a party: words are agreed on before documents are held out."""
        return stacked(part[party] for part in (self.held, self.others) if party in part)

    def honest(self, by_party: Mapping[str, Any]) -> dict[str, Any]:
        return {party: value for party, value in by_party.items() if party not in self.helpers}


def stacked(tables: Iterable[Any]) -> sparse.csr_array:
    return sparse.csr_array(sparse.vstack(list(tables)))


@dataclass(frozen=True)
class Proportion:
    """`hits` successes in `of` independent trials. The auditor computes the exact interval."""

    hits: int
    of: int
    doubt: float = 1.0  # the share of the error probability (1 - confidence) that the interval may use

    @classmethod
    def over(cls, counts: Iterable[tuple[int, int]]) -> Self:
        """The sum over several pairs of hits and trials."""
        pairs = list(counts)
        return cls(sum(hits for hits, _ in pairs), sum(of for _, of in pairs))

    @classmethod
    def of_mask(cls, right: Array) -> Self:
        """Of all places of a mask, how many are true."""
        return cls(int(right.sum()), right.size)

    @classmethod
    def recall(cls, masks: Iterable[tuple[Array, Array]]) -> Self:
        """How many of the true places were guessed. Each pair holds a mask of guesses and a mask of the truth."""
        return cls.over((int((guess & real).sum()), int(real.sum())) for guess, real in masks)

    @classmethod
    def precision(cls, masks: Iterable[tuple[Array, Array]]) -> Self:
        """How many of the guessed places are true. Each pair holds a mask of guesses and a mask of the truth."""
        return cls.recall((real, guess) for guess, real in masks)


@dataclass(frozen=True)
class Estimate:
    """A measure that is no proportion, with the interval and the upper limit from the attack's own theory."""

    value: float
    low: float
    high: float
    ceiling: float


@dataclass(frozen=True)
class Score:
    """The score of an estimate by measure, with a few examples and curves."""

    measures: Mapping[str, Proportion | Estimate]
    examples: tuple[Example, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class RoundReconstruction:
    """An attack's guess about one round of one party, or of all parties (party "")."""

    serial: int
    party: str
    documents: tuple[Array, ...] = ()
    words: Array | None = None
    groups: tuple[Array, ...] = ()  # words of one document each


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to test a claim.

    First `pose` asks a question; it knows the truth. Then `prepare` computes what depends on public facts and the question
    alone, once for the run and its control. `attack` estimates from the view, and `judge` scores the estimate. If a run
    claims differential privacy, `allowed` is the most of a measure that the claim permits: only more refutes it.
    """

    name: str
    title: str
    citation: str
    cost: str
    given: str  # what the attacker knows beside the channels
    needs: tuple[str, ...] = (REQUEST, VOCABULARY)  # channels that the attack must read
    either: tuple[str, ...] = ()  # it needs one of these channels, and reads all that are granted
    models: tuple[str, ...]
    measures: Mapping[str, str]  # each measure's name, and the unit that it counts
    bears_on: tuple[str, ...] = ()  # regulators.CRITERIA that it says something about; none if it finds out nothing of a person
    attack: Callable[[AdversaryView, Effort], Any]
    judge: Callable[[Any, GroundTruth], Score]
    efforts: tuple[str, ...] = ()  # the amounts that a plan must set, beside rounds
    questions: tuple[str, ...] = (TRAIN,)  # the questions whose rounds it reads
    pose: Callable[[GroundTruth, Effort, np.random.Generator], Challenge] | None = None
    prepare: Callable[[AdversaryView, Effort], Any] | None = None
    allowed: Callable[[str, Budget], float] | None = None
    malicious_vector: Callable[[Array, Terms], Array] | None = None  # what a malicious party sends in place of its vector
    malicious_state: Callable[[State, TopicModel, Effort], State] | None = None  # what a malicious coordinator sends as state
    varied: bool = False  # whether the judge varies how many documents take part in the answers of its networked runs
    limits: tuple[str, ...] = ()  # what the attack cannot do, for the report
    remark: str = ""  # what a reader of the figures should know

    def reads(self, model: str) -> bool:
        return self.models == EVERY_MODEL or model in self.models


class MemoryStore(dict[str, bytes]):
    def put(self, key: str, value: bytes) -> None:
        self[key] = value


def broken_attack(attack: str, part: str) -> Failed:
    """The error of an attack that does not do what it declares, or of a plan that asks for what it does not."""
    return Failed(
        "the attack {attack!r} does not both declare and give {part}",
        hint="in a plan, name what the attack declares; in an attack's file, declare exactly the measures that its judge gives",
        attack=attack,
        part=part,
    )
