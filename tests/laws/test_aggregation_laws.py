"""Plain sums pass the laws, and each law catches the fault it is there for, put into a plain or a masked sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.masked import round as masked_round
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.plain import PlainCoordinatorRound, PlainCoordinatorSession, PlainSum
from securetm.aggregation.vectors import unpack_vector
from securetm.contracts import (
    Aggregation,
    Array,
    Block,
    Claim,
    Cohort,
    Domain,
    Message,
    Needs,
    Parcel,
    Roster,
    Store,
    Terms,
)
from securetm.errors import Refused
from securetm.sessions.identities import PinnedRoster
from securetm.testing import aggregation_laws
from securetm.testing.aggregation_laws import LUCK, MEMBERS, RUNS, AggregationLaws, LocalSession, cohort, told_apart

INTEGERS = Terms((Block("a", (2, 2)), Block("b", (3,))), domain=Domain.INTEGER, bits=64, reach=1000)


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


# ---- mutants -----------------------------------------------------------------------------------------------------------


class PretendingPlain(PlainSum):
    """Claims what a plain sum cannot keep."""

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset({Claim("sees only sums", "coordinator", cohort.colluding)})


def both_add(patch: pytest.MonkeyPatch) -> None:
    """The sign is forgotten, so that masks do not cancel."""
    honest = masked_round.MaskedPartyRound._masks
    added = lambda party, header, prepared: [(seed, True) for seed, _ in honest(party, header, prepared)]  # noqa: E731
    patch.setattr(masked_round.MaskedPartyRound, "_masks", added)


def same_mask(patch: pytest.MonkeyPatch) -> None:
    """A mask is used again in the next round: the difference of two messages is that of two answers."""
    patch.setattr(masked_round, "pair_seed", lambda secret, at, one, two: bytes([one + two]) * 32)
    patch.setattr(masked_round, "self_seed", lambda secret, at, owner, salt: bytes([100 + owner]) * 32)


def one_coordinate_bare(patch: pytest.MonkeyPatch) -> None:
    """The last coordinate has no mask."""
    patch.setattr(masked_round, "apply_masks", lambda vector, masks: apply_masks(vector[:-1], masks))


def small_masks(patch: pytest.MonkeyPatch) -> None:
    """Masks of 8 bits where answers have 10: what sticks out shows."""

    def small(vector: Array, masks: Iterable[Mask]) -> None:
        for seed, plus in masks:
            mask = np.zeros_like(vector)
            apply_masks(mask, [(seed, True)])
            vector += (mask & vector.dtype.type(255)) if plus else -(mask & vector.dtype.type(255))

    patch.setattr(masked_round, "apply_masks", small)


class Careless(PlainSum):
    """Whoever speaks is added, however often."""

    def coordinator(self, roster: Roster, store: Store) -> Any:
        return TrustingSession(PinnedRoster(roster))


class TrustingSession(PlainCoordinatorSession):
    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Any:
        return self.begun(cohort, TakesAnything(self.register, cohort, terms))


class TakesAnything(PlainCoordinatorRound):
    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        return ()


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
    [(LAWS.test_silence, PretendingPlain(), INTEGERS), (LAWS.test_agreement, FirstComeFirstAdded(), REALS)],
)
def test_the_law_catches_the_mutant(law: Any, mutant: Aggregation, asked: Terms) -> None:
    with pytest.raises(AssertionError):
        law(mutant, asked)


@pytest.mark.parametrize(
    ("law", "fault"),
    [
        (LAWS.test_sum, both_add),
        (LAWS.test_silence, same_mask),
        (LAWS.test_silence, one_coordinate_bare),
        (LAWS.test_silence, small_masks),
    ],
)
def test_the_law_catches_the_fault_of_a_masked_sum(
    law: Any, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    monkeypatch.setattr(aggregation_laws, "RUNS", 6)  # whoever reads a leak is right every time, in few runs as in many
    with pytest.raises(AssertionError):
        law(MaskedSum(colluding=2), INTEGERS)


@pytest.mark.parametrize(
    ("law", "mutant"),
    [
        (LAWS.test_bad_messages_are_refused_by_name, Careless()),
        (LAWS.test_strangers_and_repeats_are_refused_by_name, Careless()),
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
