"""The masked sum equals the plain sum whoever leaves whenever, opens nothing below the threshold, and keeps the laws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind
from securetm.aggregation.masked.refusals import NotPrepared
from securetm.contracts import INF, Aggregation, Array, Block, Claim, Cohort, Domain, Needs, Terms
from securetm.errors import (
    BadSetting,
    BrokenPromise,
    CohortTooSmall,
    Mismatch,
    NeedsIntegers,
    NeedsReach,
    NeedsSum,
    SecuretmError,
    SumTooWide,
    TooFewParties,
)
from securetm.testing.aggregation_laws import AggregationLaws, cohort
from securetm.testing.few_documents import EmptyStore
from tests.aggregation.played import STAGES, TERMS, Played, flat, names, plain_sum, vectors_of
from tests.quick_part import quick

# ---- the laws of every aggregation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("consistency", quick([False, True], True))
class TestMaskedSum(AggregationLaws):
    @pytest.fixture
    def aggregation(self, consistency: bool) -> Aggregation:
        return MaskedSum(consistency=consistency, colluding=2)

    @pytest.fixture
    def asked(self) -> Terms:
        return TERMS

    def test_it_claims_what_the_threat_models_ask(self, aggregation: Aggregation, consistency: bool) -> None:
        said = {"sees only sums", "cannot speak for a party"} | (
            {"cannot show parties different cohorts"} if consistency else set()
        )
        assert aggregation.claims(cohort()) == {Claim(what, "coordinator", 2) for what in said}


# ---- the sum, whoever leaves -------------------------------------------------------------------------------------------

LEAVING = {  # stage -> whether whoever leaves there is in the sum all the same
    Kind.COMMIT: False,
    Kind.REVEAL: False,
    Kind.SHARES: False,
    Kind.STORED: False,
    Kind.MASKED: False,
    Kind.CONSENT: True,
    Kind.UNMASKED: True,
}


@st.composite
def departures(draw: st.DrawFn) -> tuple[int, bool, dict[Kind, set[str]], int]:
    n = draw(st.integers(2, 20))
    consistency = draw(st.booleans())
    members, staying = names(n), MaskedSum()._threshold(n)
    order = draw(st.permutations(members))
    leaving = order[: draw(st.integers(0, n - staying))]
    stages = [stage for stage in STAGES if consistency or stage is not Kind.CONSENT]
    chosen: dict[Kind, set[str]] = {}
    for name in leaving:
        chosen.setdefault(draw(st.sampled_from(stages)), set()).add(name)
    return n, consistency, chosen, draw(st.integers(0, 2**16))


def expected_survivors(members: Sequence[str], leaves: dict[Kind, set[str]]) -> tuple[str, ...]:
    out = {name for stage, who in leaves.items() if not LEAVING[stage] for name in who}
    return tuple(name for name in members if name not in out)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(departures())
def test_whoever_leaves_whenever_the_sum_is_that_of_the_survivors(case: tuple[int, bool, dict[Kind, set[str]], int]) -> None:
    n, consistency, leaves, seed = case
    members = names(n)
    played = Played(MaskedSum(consistency=consistency), members, leaves=leaves).prepare(1)
    vectors = vectors_of(members, seed=seed)
    answer = played.play(played.cohort(), vectors)
    assert answer.survivors == expected_survivors(members, leaves)
    assert np.array_equal(flat(answer), plain_sum(vectors, answer.survivors))


@pytest.mark.parametrize("stage", STAGES)
def test_below_the_threshold_nothing_opens(stage: Kind) -> None:
    n = 5
    members, aggregation = names(n), MaskedSum(consistency=True)
    many = n - aggregation._threshold(n) + 1
    played = Played(aggregation, members, leaves={stage: set(members[:many])})
    with pytest.raises((TooFewParties, CohortTooSmall)):
        played.prepare(1).play(played.cohort(), vectors_of(members))
    with pytest.raises(SecuretmError):
        played.middle.answer(played.cohort().round_id)


@pytest.mark.parametrize("consistency", quick([False, True], True))
@pytest.mark.parametrize(("n", "staying"), [(40, 36), pytest.param(100, 90, marks=pytest.mark.slow)])
def test_random_neighbours_recover_whoever_leaves(n: int, staying: int, consistency: bool) -> None:
    aggregation, members = MaskedSum(consistency=consistency, threshold=staying, colluding=2), names(n)
    assert not aggregation.geometry(n).complete
    played = Played(aggregation, members, leaves={Kind.SHARES: {members[3]}, Kind.MASKED: set(members[5:8])})
    vectors = vectors_of(members)
    answer = played.prepare(1).play(played.cohort(threshold=staying), vectors)
    assert answer.survivors == tuple(m for m in members if m not in {members[3], *members[5:8]})
    assert np.array_equal(flat(answer), plain_sum(vectors, answer.survivors))


def test_where_all_hold_shares_masks_lie_with_fewer_and_half_of_the_parties_may_leave() -> None:
    aggregation, members = MaskedSum(colluding=2, complete_up_to=8), names(20)
    away = members[6:14]  # as many as may leave
    played = Played(aggregation, members, leaves={Kind.MASKED: set(away)}).prepare(1)
    assert aggregation.geometry(20).complete
    assert {len(played.parties[m]._prekeys.prepared().bundles) for m in members} == {20}
    assert {len(played.parties[m]._prekeys.prepared().peers) for m in members} == {12}
    vectors = vectors_of(members)
    answer = played.play(played.cohort(), vectors)
    assert answer.survivors == tuple(m for m in members if m not in away)
    assert np.array_equal(flat(answer), plain_sum(vectors, answer.survivors))


def test_whoever_missed_a_round_is_back_after_the_next() -> None:
    played = Played(MaskedSum(), names(5)).prepare(4)
    vectors, away = vectors_of(played.members), played.members[2]
    played.leaves = {Kind.MASKED: {away}}
    missing = played.parties.pop(away)  # it is not even asked
    assert away not in played.play(played.cohort(0), vectors).survivors
    played.parties[away], played.leaves = missing, {}
    assert away not in played.play(played.cohort(1), vectors).survivors  # one prekey behind, and told so
    answer = played.play(played.cohort(2), vectors)
    assert away in answer.survivors
    assert np.array_equal(flat(answer), plain_sum(vectors, played.members))


def test_a_round_of_a_smaller_cohort_sums_only_that() -> None:
    played = Played(MaskedSum(), names(6)).prepare(1)
    vectors, some = vectors_of(played.members), played.members[1:6]
    played.parties = {m: session for m, session in played.parties.items() if m in some}
    answer = played.play(played.cohort(members=some), vectors)
    assert np.array_equal(flat(answer), plain_sum(vectors, some))


def test_one_set_up_serves_its_rounds_and_no_more() -> None:
    played = Played(MaskedSum(), names(3)).prepare(2)
    vectors = vectors_of(played.members)
    for number in range(2):
        assert {session.prepared for session in (played.middle, *played.parties.values())} == {2 - number}
        played.play(played.cohort(number), vectors)
    with pytest.raises(NotPrepared):
        played.play(played.cohort(2), vectors)
    assert np.array_equal(flat(played.prepare(2).play(played.cohort(3), vectors)), plain_sum(vectors, played.members))


# ---- ring and range --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reach", "bits"), [(2**31 // 4 - 1, 32), (2**31 // 4, 64), (2**61 - 1, 64)])
def test_the_ring_is_the_smallest_that_the_sum_fits(reach: int, bits: int) -> None:
    terms = MaskedSum().admit(Terms((Block("a", (3,)),), domain=Domain.INTEGER, reach=reach), Cohort(b"", 0, names(4), 3))
    assert terms.bits == bits


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("reach", [2**31 // 4 - 1, 2**60])
def test_the_largest_values_do_not_overflow(reach: int, sign: int) -> None:
    terms = Terms((Block("a", (5,)),), domain=Domain.INTEGER, reach=reach)
    played = Played(MaskedSum(), names(4)).prepare(1)
    answer = played.play(played.cohort(), dict.fromkeys(played.members, np.full(5, sign * reach)), terms)
    assert flat(answer).tolist() == [4 * sign * reach] * 5


def test_values_beyond_the_promise_are_cut_and_only_the_party_knows() -> None:
    played = Played(MaskedSum(), names(3)).prepare(1)
    vectors = {m: np.full(TERMS.size, 10) for m in played.members}
    vectors[played.members[0]] = np.array([5000, -5000, 10, 10, 10, 10, 10])
    assert flat(played.play(played.cohort(), vectors)).tolist() == [1020, -980, 30, 30, 30, 30, 30]
    assert [int.from_bytes(played.stores[name].get("clamped") or b"") for name in played.members] == [2, 0, 0]


def test_what_is_not_whole_never_enters_a_round() -> None:
    played = Played(MaskedSum(), names(3)).prepare(1)
    with pytest.raises(BrokenPromise):
        played.play(played.cohort(), dict.fromkeys(played.members, np.full(TERMS.size, np.nan)))


# ---- what is refused before any document is read -------------------------------------------------------------------------

INTEGERS = Terms((Block("a", (3,)),), domain=Domain.INTEGER, reach=100)


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        (Terms((Block("a", (3,)),), reach=1.0), NeedsIntegers),
        (Terms((Block("a", (3,)),), domain=Domain.INTEGER, needs=Needs.EACH, reach=1), NeedsSum),
        (Terms((Block("a", (3,)),), domain=Domain.INTEGER, reach=INF), NeedsReach),
        (Terms((Block("a", (3,)),), domain=Domain.INTEGER, reach=2**62), SumTooWide),
    ],
)
def test_unsound_terms_are_refused_with_a_hint(terms: Terms, problem: type[SecuretmError]) -> None:
    with pytest.raises(problem) as caught:
        MaskedSum().admit(terms, Cohort(b"", 0, names(4), 3))
    assert caught.value.advice()


@pytest.mark.parametrize(
    ("aggregation", "n", "threshold", "colluding", "problem"),
    [
        (MaskedSum(threshold=6, colluding=2), 10, 6, 2, "two lists of survivors"),  # 2 * 6 <= 10 + 2
        (MaskedSum(threshold=6), 10, 6, 2, "two lists of survivors"),  # the cohort fears more than the set-up was made for
        (MaskedSum(threshold=3), 4, 3, 2, "fewer than two honest"),
        (MaskedSum(threshold=9), 8, 9, 0, "cannot be reached by"),
        (MaskedSum(threshold=30, colluding=2, degree=4), 40, 30, 2, "fail more often than once"),
    ],
)
def test_unsound_cohorts_are_refused_with_a_hint(
    aggregation: MaskedSum, n: int, threshold: int, colluding: int, problem: str
) -> None:
    with pytest.raises(Mismatch, match=problem) as caught:
        aggregation.admit(INTEGERS, Cohort(b"", 0, names(n), threshold, colluding))
    assert caught.value.advice()


@pytest.mark.parametrize(("n", "threshold", "colluding"), [(10, 7, 2), (4, 4, 2), (2, 2, 0), (3, 3, 1)])
def test_the_smallest_sound_cohorts_are_admitted(n: int, threshold: int, colluding: int) -> None:
    whole = Cohort(b"", 0, names(n), threshold, colluding)
    aggregation = MaskedSum(threshold=threshold, colluding=colluding)
    assert aggregation.admit(INTEGERS, whole).bits == 32
    assert {claim.colluding for claim in aggregation.claims(whole)} == {min(2 * threshold - n - 1, threshold - 2)}
    assert MaskedSum(colluding=colluding)._threshold(n) == threshold


@pytest.mark.parametrize(
    "setting",
    [{"rounds": 0}, {"rounds": 5000}, {"threshold": -1}, {"degree": 7}, {"failure": 0.5}, {"stall": 0}, {"complete_up_to": 1}],
)
def test_settings_without_sense_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(BadSetting) as caught:
        MaskedSum(**setting)
    assert caught.value.name in setting


def test_the_coordinator_holds_no_vector() -> None:
    """After every party sent its vector, all that the coordinator can reach is one sum: counted in bytes."""
    kept: dict[int, int] = {}
    for n in (4, 16):
        terms = Terms((Block("a", (20_000,)),), domain=Domain.INTEGER, reach=100)
        played = Played(MaskedSum(), names(n)).prepare(1)
        cohort_, vectors = played.cohort(), {m: np.zeros(20_000, np.int64) for m in played.members}
        middle, parties = played.begin(cohort_, vectors, MaskedSum().admit(terms, cohort_))
        for name, party in parties.items():
            middle.receive(name, party.begin()[0][1])
        kept[n] = sum(reachable(middle, 10_000).values())
    assert kept[4] == kept[16] == 80_000


def reachable(root: object, least: int) -> dict[int, int]:
    """The sizes of all large arrays and byte strings that can be reached from an object, the store aside."""
    found: dict[int, int] = {}
    met, waiting = set[int](), [root]
    while waiting:
        one = waiting.pop()
        if id(one) in met or isinstance(one, EmptyStore):
            continue
        met.add(id(one))
        if isinstance(one, Array.__origin__ | bytes) and (size := one.nbytes if hasattr(one, "nbytes") else len(one)) >= least:
            found[id(one)] = size
        cells = [cell.cell_contents for cell in getattr(one, "__closure__", None) or ()]
        inside = list(one.values()) if isinstance(one, dict) else list(one) if isinstance(one, list | tuple | set) else []
        waiting.extend([*cells, *inside, *vars(one).values()] if hasattr(one, "__dict__") else [*cells, *inside])
        waiting.extend([one.__self__] if hasattr(one, "__self__") else [])
    return found
