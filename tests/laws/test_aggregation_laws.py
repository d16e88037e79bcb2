"""Plain sums and toy masks pass the laws, and each law catches the fault it is there for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.plain import PlainCoordinatorRound, PlainCoordinatorSession, PlainSum
from securetm.aggregation.vectors import unpack_vector
from securetm.contracts import (
    Aggregation,
    Array,
    Block,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Message,
    Needs,
    Parcel,
    Roster,
    Store,
    Terms,
)
from securetm.errors import BadSetting, Refused
from securetm.sessions.identities import PinnedRoster
from securetm.testing.aggregation_laws import LUCK, MEMBERS, RUNS, AggregationLaws, LocalSession, cohort, told_apart
from tests.laws.toy_masks import AddingSession, Gathering, MaskingSession, ToyMasks

INTEGERS = Terms((Block("a", (2, 2)), Block("b", (3,))), domain=Domain.INTEGER, bits=64)


class TestPlainSum(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return PlainSum()

    def test_it_hides_nothing_and_does_not_claim_to(self, aggregation: Aggregation, asked: Terms) -> None:
        assert aggregation.claims(cohort()) == frozenset()
        assert self.coordinator_tells_apart(aggregation, asked) == 1.0


@pytest.mark.parametrize("bits", [32, 64])
class TestPlainSumOfReals(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return PlainSum()

    @pytest.fixture
    def asked(self, bits: int) -> Terms:
        return Terms((Block("a", (2, 2)), Block("b", (3,))), bits=bits)

    @pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
    def test_what_is_not_finite_is_refused(self, aggregation: Aggregation, asked: Terms, poison: float) -> None:
        exchanges, sent = self.first_messages(aggregation, asked)
        bad = np.frombuffer(sent["ant"], dtype=f"<f{asked.bits // 8}").copy()
        bad[3] = poison
        with pytest.raises(Refused, match="not finite"):
            exchanges["coordinator"].receive("ant", bad.tobytes())


def test_plain_sums_carry_what_each_party_sends() -> None:
    terms = Terms((Block("own", (5, 2)),), needs=Needs.EACH, ragged=True, bits=64)
    vectors = {m: np.full((n, 2), float(n)) for n, m in enumerate(MEMBERS)}
    answer = LocalSession(PlainSum()).play(cohort(), PlainSum().admit(terms, cohort()), vectors)
    assert answer.total is None
    assert [len(answer.each[m]["own"]) for m in MEMBERS] == [0, 1, 2, 3]


class TestToyMasks(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return ToyMasks()

    def test_a_cohort_that_could_not_be_hidden_is_refused(self, aggregation: Aggregation, asked: Terms) -> None:
        with pytest.raises(BadSetting):
            aggregation.admit(asked, cohort(colluding=3))
        with pytest.raises(BadSetting):
            aggregation.admit(asked, Cohort(b"r", 0, MEMBERS, threshold=2))


# ---- mutants -----------------------------------------------------------------------------------------------------------


class PretendingPlain(PlainSum):
    """Claims what a plain sum cannot keep."""

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset({Claim("sees only sums", "coordinator", cohort.colluding)})


@dataclass(frozen=True)
class Mutated(ToyMasks):
    """Toy masks with another session for the parties or the coordinator."""

    session: type[MaskingSession] = MaskingSession
    middle: type[AddingSession] = AddingSession

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> MaskingSession:
        return self.session(me, roster.members, entropy, store)

    def coordinator(self, roster: Roster, store: Store) -> AddingSession:
        return self.middle(roster.members)


class BothAdd(MaskingSession):
    """Forgets the sign, so that masks do not cancel."""

    def masked(self, flat: Array, cohort: Cohort) -> Array:
        for peer in cohort.members:
            flat = flat + (self.mask(peer, cohort, len(flat)) if peer != self.me else 0)
        return flat


class SameMask(MaskingSession):
    """Uses a mask again in the next round: the difference of two messages is that of two answers."""

    def mask(self, peer: str, cohort: Cohort, n: int) -> Array:
        return super().mask(peer, Cohort(b"always", 0, cohort.members), n)


class OneCoordinateBare(MaskingSession):
    """Leaves the last coordinate without a mask."""

    def mask(self, peer: str, cohort: Cohort, n: int) -> Array:
        return np.append(super().mask(peer, cohort, n)[:-1], np.uint64(0))


class SmallMasks(MaskingSession):
    """Masks of 8 bits where answers have 10: what sticks out shows."""

    def mask(self, peer: str, cohort: Cohort, n: int) -> Array:
        return super().mask(peer, cohort, n) & np.uint64(255)


class TakesAnything(Gathering):
    """Whoever speaks is added, however often."""

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        self.got[sender] = bytes(message)
        self.members = (*self.members, sender) if sender not in self.members else self.members
        return ()


class Careless(AddingSession):
    """Opens a coordinator's round that checks nothing."""

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Gathering:
        self.rounds[cohort.round_id] = TakesAnything(cohort.members, 8 * terms.size, terms)
        return self.rounds[cohort.round_id]


class FirstComeFirstAdded(PlainSum):
    """Adds floats in the order in which they arrive, so that the total depends on the network."""

    def coordinator(self, roster: Roster, store: Store) -> Any:
        return HastySession(PinnedRoster(roster))


class HastySession(PlainCoordinatorSession):
    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Any:
        return self.begun(cohort, Hasty(self.register, cohort, terms))


class Hasty(PlainCoordinatorRound):
    def _take(self, place: int, sender: str, message: Message) -> None:
        self._add(unpack_vector(message, self._terms, sender))


LAWS = AggregationLaws()
REALS = Terms((Block("a", (500,)),), bits=32)


@pytest.mark.parametrize(
    ("law", "mutant", "asked"),
    [
        (LAWS.test_sum, Mutated(session=BothAdd), INTEGERS),
        (LAWS.test_silence, PretendingPlain(), INTEGERS),
        (LAWS.test_silence, Mutated(session=SameMask), INTEGERS),
        (LAWS.test_silence, Mutated(session=OneCoordinateBare), INTEGERS),
        (LAWS.test_silence, Mutated(session=SmallMasks), INTEGERS),
        (LAWS.test_agreement, FirstComeFirstAdded(), REALS),
    ],
)
def test_the_law_catches_the_mutant(law: Any, mutant: Aggregation, asked: Terms) -> None:
    with pytest.raises(AssertionError):
        law(mutant, asked)


@pytest.mark.parametrize(
    ("law", "mutant"),
    [
        (LAWS.test_bad_messages_are_refused_by_name, Mutated(middle=Careless)),
        (LAWS.test_strangers_and_repeats_are_refused_by_name, Mutated(middle=Careless)),
        (LAWS.test_what_needs_each_is_refused_if_only_sums_are_seen, PretendingPlain()),
    ],
)
def test_a_missing_refusal_is_noticed(law: Any, mutant: Aggregation) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        law(mutant, INTEGERS)


def test_the_law_of_silence_leaves_room_for_luck_only() -> None:
    assert 0.5 < LUCK < 0.95
    rng = np.random.default_rng(0)
    assert told_apart(list(rng.normal(size=(2 * RUNS, 30))), list(rng.normal(size=(2 * RUNS, 30)))) <= LUCK
    assert told_apart(list(rng.normal(size=(2 * RUNS, 30))), list(rng.normal(1.0, size=(2 * RUNS, 30)))) > LUCK
