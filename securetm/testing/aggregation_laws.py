"""The laws of every aggregation: the right sum, no more seen than is claimed, named refusals, equal bytes for equal seeds.

Subclass `AggregationLaws` and give `aggregation` and `asked`. Attacks of an active coordinator are not tried here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy.stats import binom

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import (
    Aggregation,
    Answer,
    Array,
    Block,
    Cohort,
    Domain,
    Entropy,
    Exchange,
    Message,
    Needs,
    Roster,
    Terms,
)
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem, Seeded
from securetm.errors import SecuretmError
from securetm.testing.few_documents import EmptyStore
from securetm.testing.known_secrets import KnownSecrets

COORDINATOR = "coordinator"
MEMBERS = ("ant", "bee", "cat", "dog")
IDENTITIES = {member: hashlib.sha256(b"identity of " + member.encode()).digest() for member in MEMBERS}
KEYS = {m: Ed25519PrivateKey.from_private_bytes(raw).public_key().public_bytes_raw() for m, raw in IDENTITIES.items()}
ROSTER = Roster(b"s" * 32, b"p" * 32, MEMBERS, KEYS)
RUNS = 20  # sessions of each of two inputs that the classifier learns from, and as many again that it must tell apart
# A classifier that guesses is right more often than this with a probability below 1e-9; one that reads a leak is right always.
LUCK = binom.isf(1e-9, 2 * RUNS, 0.5) / (2 * RUNS)

Vectors = Mapping[str, Array]


def cohort(number: int = 0, colluding: int = 2) -> Cohort:
    return Cohort(bytes([number + 1]) * 32, number, MEMBERS, threshold=len(MEMBERS), colluding=colluding)


def seeded(name: str) -> Entropy:
    return Seeded(hashlib.sha256(name.encode()).digest(), unsafe=True)


@dataclass
class LocalSession:
    """All roles of a session in one process; every message passes here, and `seen` is what the coordinator receives."""

    aggregation: Aggregation
    seed: str = ""
    backwards: bool = False  # deliver the last message of a wave first
    seen: list[tuple[str, Message]] = field(default_factory=list)
    received: list[Message] = field(default_factory=list)  # what parties receive

    def __post_init__(self) -> None:
        draw = {m: seeded(self.seed + m) if self.seed else OperatingSystem() for m in MEMBERS}
        self.parties = {m: self.aggregation.party(m, ROSTER, draw[m], EmptyStore({"identity": IDENTITIES[m]})) for m in MEMBERS}
        self.middle = self.aggregation.coordinator(ROSTER, EmptyStore({}))
        self.run({COORDINATOR: self.middle.prepare(4), **{m: party.prepare(4) for m, party in self.parties.items()}})

    def exchanges(self, during: Cohort, terms: Terms, vectors: Vectors) -> dict[str, Exchange]:
        parties = {m: party.round(during, terms, blocks_of(vectors[m], terms)) for m, party in self.parties.items()}
        return {COORDINATOR: self.middle.round(during, terms, None), **parties}

    def run(self, exchanges: Mapping[str, Exchange]) -> None:
        """Carries wave after wave until the coordinator sends nothing more."""
        middle = exchanges[COORDINATOR]
        wave = [(name, message) for name, one in exchanges.items() for _, message in one.begin()]
        while wave:
            for name, message in reversed(wave) if self.backwards else wave:
                self.seen.append((name, message))
                middle.receive(name, message)
            wave = []
            for to, message in middle.expire(()):
                self.received.append(message)
                wave += [(to, reply) for _, reply in exchanges[to].receive(COORDINATOR, message)]

    def play(self, during: Cohort, terms: Terms, vectors: Vectors) -> Answer:
        """Carries out one round, and gives the answer of the role that opens it."""
        self.run(self.exchanges(during, terms, vectors))
        opener = self.middle if self.aggregation.opened_by == COORDINATOR else self.parties[MEMBERS[0]]
        return opener.answer(during.round_id)


def flat(answer: Answer, terms: Terms) -> Array:
    """The opened sum as one vector."""
    assert answer.total is not None
    return np.concatenate([np.asarray(answer.total[block.name]).ravel() for block in terms.layout])


def told_apart(left: Sequence[Array], right: Sequence[Array]) -> float:
    """The share of views that a classifier names rightly after it learned from the other half: 0.5 is guessing."""
    half = len(left) // 2
    first, second = np.array(left, dtype=float), np.array(right, dtype=float)
    spread = first[:half].var(axis=0) + second[:half].var(axis=0) + 1e-3
    direction = (first[:half].mean(axis=0) - second[:half].mean(axis=0)) / spread
    middle = (first[:half].mean(axis=0) + second[:half].mean(axis=0)) @ direction / 2
    right_side = np.concatenate([first[half:] @ direction > middle, second[half:] @ direction < middle])
    return float(right_side.mean())


def view(local: LocalSession) -> Array:
    """What the coordinator received, byte by byte, and the difference of each message from the sender's message before."""
    by_sender = {m: [np.frombuffer(sent, np.uint8) for sender, sent in local.seen if sender == m] for m in MEMBERS}
    pairs = [pair for sent in by_sender.values() for pair in pairwise(sent) if len(pair[0]) == len(pair[1])]
    return np.concatenate([part for sent in by_sender.values() for part in sent] + [two - one for one, two in pairs])


class AggregationLaws:
    """Laws of one aggregation, for the terms that the fixture `asked` gives."""

    @pytest.fixture
    def aggregation(self) -> Aggregation:
        raise NotImplementedError("a subclass gives the aggregation")

    @pytest.fixture
    def asked(self) -> Terms:
        return Terms((Block("a", (2, 2)), Block("b", (3,))), domain=Domain.INTEGER, bits=64)

    def vectors(self, terms: Terms, seed: int = 0) -> Vectors:
        """Each party's vector: small numbers, because a stated error may be relative to a sum near one."""
        rng = np.random.default_rng(seed)
        if terms.domain is Domain.INTEGER:
            return {m: rng.integers(-1000, 1000, terms.size) for m in MEMBERS}
        kind = np.float32 if terms.bits == 32 else np.float64
        return {m: (rng.uniform(-1, 1, terms.size) / len(MEMBERS)).astype(kind) for m in MEMBERS}

    def equal_in_sum(self, terms: Terms, vectors: Vectors) -> Vectors:
        """Other vectors of two honest parties with the same sum; the others' stay as they are."""
        one, two = MEMBERS[:2]
        return {**vectors, one: vectors[two], two: vectors[one]}

    def test_sum(self, aggregation: Aggregation, asked: Terms) -> None:
        local = LocalSession(aggregation)
        for number in range(2):
            during = cohort(number)
            terms = aggregation.admit(asked, during)
            vectors = self.vectors(terms, number)
            answer = local.play(during, terms, vectors)
            plain = np.sum([v.astype(np.float64) for v in vectors.values()], axis=0)
            assert np.abs(flat(answer, terms) - plain).max() <= aggregation.error(terms, during) + 1e-15
            assert answer.survivors == MEMBERS

    def test_terms_stay_within_what_was_asked(self, aggregation: Aggregation, asked: Terms) -> None:
        terms = aggregation.admit(asked, cohort())
        assert terms.layout == asked.layout
        assert (terms.noised, terms.deviation, terms.unit) == (asked.noised, asked.deviation, asked.unit)

    def test_no_message_is_longer_than_is_said_before(self, aggregation: Aggregation, asked: Terms) -> None:
        local, terms = LocalSession(aggregation), aggregation.admit(asked, cohort())
        for of in (None, terms):  # the set-up, then a round
            if of is not None:
                local.play(cohort(), of, self.vectors(of))
            up, down = aggregation.longest(len(MEMBERS), 4, of)
            assert max((len(message) for _, message in local.seen), default=0) <= up
            assert max(map(len, local.received), default=0) <= down
            local.seen.clear()
            local.received.clear()

    def test_agreement(self, aggregation: Aggregation, asked: Terms) -> None:
        terms = aggregation.admit(asked, cohort())
        with KnownSecrets().come_again():
            sessions = [LocalSession(aggregation, "a seed", backwards) for backwards in (False, False, True)]
        answers = [flat(t.play(cohort(), terms, self.vectors(terms)), terms).tobytes() for t in sessions]
        assert sessions[0].seen == sessions[1].seen
        assert sorted(sessions[0].seen) == sorted(sessions[2].seen)
        assert answers[0] == answers[1] == answers[2]

    def test_silence(self, aggregation: Aggregation, asked: Terms) -> None:
        if any(claim.what == "sees only sums" for claim in aggregation.claims(cohort())):
            assert self.coordinator_tells_apart(aggregation, asked) <= LUCK

    def coordinator_tells_apart(self, aggregation: Aggregation, asked: Terms) -> float:
        """How well the coordinator tells two inputs of equal sum apart, over two rounds of a session."""
        terms = aggregation.admit(asked, cohort())
        first = self.vectors(terms)
        second = self.equal_in_sum(terms, first)
        views: dict[int, list[Array]] = {0: [], 1: []}
        for _ in range(2 * RUNS):
            for which, vectors in enumerate((first, second)):
                local = LocalSession(aggregation)
                for number in range(2):
                    local.play(cohort(number), terms, vectors if number else first)  # the inputs differ in the second round
                views[which].append(view(local))
        return told_apart(views[0], views[1])

    def test_what_needs_each_is_refused_if_only_sums_are_seen(self, aggregation: Aggregation, asked: Terms) -> None:
        if any(claim.what == "sees only sums" for claim in aggregation.claims(cohort())):
            each = Terms(asked.layout[:1], needs=Needs.EACH, ragged=True, bits=64)
            with pytest.raises(SecuretmError):
                aggregation.admit(each, cohort())

    def test_bad_messages_are_refused_by_name(self, aggregation: Aggregation, asked: Terms) -> None:
        terms = aggregation.admit(asked, cohort())
        for spoil in (lambda m: b"", lambda m: m[:-1], lambda m: m + b"\0", lambda m: m + m):
            exchanges, sent = self.first_messages(aggregation, terms)
            self.refused(exchanges[COORDINATOR], MEMBERS[0], spoil(sent[MEMBERS[0]]))
            self.refused(exchanges[MEMBERS[0]], COORDINATOR, spoil(sent[MEMBERS[0]]))

    def test_strangers_and_repeats_are_refused_by_name(self, aggregation: Aggregation, asked: Terms) -> None:
        exchanges, sent = self.first_messages(aggregation, aggregation.admit(asked, cohort()))
        self.refused(exchanges[COORDINATOR], "stranger", sent[MEMBERS[0]])
        exchanges[COORDINATOR].receive(MEMBERS[0], sent[MEMBERS[0]])
        self.refused(exchanges[COORDINATOR], MEMBERS[0], sent[MEMBERS[0]])

    def test_a_round_with_too_few_answers_has_no_sum(self, aggregation: Aggregation, asked: Terms) -> None:
        local, terms = LocalSession(aggregation), aggregation.admit(asked, cohort())
        exchanges = local.exchanges(cohort(), terms, self.vectors(terms))
        for name in MEMBERS[:-1]:
            for to, message in exchanges[name].begin():
                exchanges[to].receive(name, message)

        def end() -> None:
            exchanges[COORDINATOR].expire(MEMBERS[-1:])
            local.middle.answer(cohort().round_id)

        with pytest.raises(SecuretmError) as caught:
            end()
        assert type(caught.value) is not SecuretmError

    def test_an_unknown_round_has_no_answer(self, aggregation: Aggregation, asked: Terms) -> None:
        local = LocalSession(aggregation)
        for party in (local.middle, local.parties[MEMBERS[0]]):
            with pytest.raises(SecuretmError):
                party.answer(b"never asked")

    def first_messages(self, aggregation: Aggregation, terms: Terms) -> tuple[dict[str, Exchange], dict[str, Message]]:
        """The exchanges of a round, and each party's first message to the coordinator, which is not delivered yet."""
        exchanges = LocalSession(aggregation).exchanges(cohort(), terms, self.vectors(terms))
        return exchanges, {m: next(message for to, message in exchanges[m].begin() if to == COORDINATOR) for m in MEMBERS}

    def refused(self, exchange: Exchange, sender: str, message: Message) -> None:
        with pytest.raises(SecuretmError) as caught:
            exchange.receive(sender, message)
        assert type(caught.value) is not SecuretmError
        assert str(caught.value)
