"""Hidden sums equal plain sums: the laws of every aggregation, any number of parties, any that leave, after restarts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.aggregation.homomorphic.bfv import BfvCode, BfvSum
from securetm.aggregation.homomorphic.ckks import CkksCode, CkksSum, polynomial_of
from securetm.aggregation.homomorphic.encrypted_sum import NoSumKey
from securetm.aggregation.homomorphic.parameters import DEGREE, cheapest
from securetm.aggregation.homomorphic.seal_library import RunningSum, context_of, decrypt, draw_ternary, encrypt
from securetm.contracts import INF, Aggregation, Block, Domain, Terms
from securetm.entropy import OperatingSystem
from securetm.errors import TooFewParties, UnknownRound
from securetm.testing.aggregation_laws import AggregationLaws
from tests.homomorphic.sessions import COORDINATOR, Session, cohort, names

WHOLE = Terms((Block("a", (2, 2)), Block("b", (3,))), domain=Domain.INTEGER, bits=32, reach=1000.0)
REAL = Terms((Block("a", (2, 2)), Block("b", (3,))), reach=1.0)


class TestBfvLaws(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return BfvSum()

    @pytest.fixture
    def asked(self) -> Terms:
        return WHOLE

    @pytest.mark.slow  # what a coordinator learns of masked sums is tried with each change
    def test_silence(self, aggregation: Aggregation, asked: Terms) -> None:
        super().test_silence(aggregation, asked)


class TestCkksLaws(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return CkksSum()

    @pytest.fixture
    def asked(self) -> Terms:
        return REAL

    @pytest.mark.slow
    def test_silence(self, aggregation: Aggregation, asked: Terms) -> None:
        super().test_silence(aggregation, asked)


# ---- hidden equals plain -----------------------------------------------------------------------------------------------


def whole_terms(size: int, bits: int = 32, reach: float = INF) -> Terms:
    return Terms((Block("counts", (size,)),), domain=Domain.INTEGER, bits=bits, reach=reach)


def whole_vectors(members: tuple[str, ...], size: int, reach: int, seed: int) -> dict[str, np.ndarray]:
    """Random numbers over the whole range, its ends among them."""
    rng = np.random.default_rng(seed)
    vectors = {m: rng.integers(-reach, reach, size, endpoint=True) for m in members}
    for vector in vectors.values():
        vector[0], vector[-1] = reach, -reach  # all parties at the end of the range: the largest sums there are
    return vectors


@settings(deadline=None, max_examples=10)
@given(
    n=st.integers(2, 40),
    away=st.sets(st.integers(0, 39)),
    bits=st.sampled_from([8, 32, 64]),
    size=st.sampled_from([2, 7, DEGREE, DEGREE + 1]),
    code=st.sampled_from([BfvSum(), CkksSum()]),
    seed=st.integers(0, 2**32),
)
def test_whole_numbers_add_up_exactly_whoever_leaves(n, away, bits, size, code, seed) -> None:  # type: ignore[no-untyped-def]
    members = names(n)
    session, during = Session(code, members), cohort(members)
    if n >= 2 ** (bits - 1):
        return
    terms = code.admit(whole_terms(size, bits), during)
    session.prepare()
    present = [m for i, m in enumerate(members) if i not in away or i < 2]
    vectors = whole_vectors(tuple(present), size, int(terms.reach), seed)
    answer = session.play(during, terms, vectors)
    assert np.array_equal(answer.total["counts"], sum(vectors.values()))
    assert answer.survivors == tuple(present)


@settings(deadline=None, max_examples=10)
@given(
    n=st.integers(2, 40),
    away=st.sets(st.integers(0, 39)),
    reach=st.sampled_from([1e-6, 1.0, 300.0, 2.0**36]),
    precision=st.sampled_from([8, 25, 40, 52]),
    size=st.sampled_from([2, 5, DEGREE + 1]),
    seed=st.integers(0, 2**32),
)
def test_real_numbers_add_up_within_the_stated_error(n, away, reach, precision, size, seed) -> None:  # type: ignore[no-untyped-def]
    members, code = names(n), CkksSum(span=reach, precision_bits=precision)
    session, during = Session(code, members), cohort(members)
    terms = code.admit(Terms((Block("weights", (size,)),), bits=64), during)
    session.prepare()
    present = [m for i, m in enumerate(members) if i not in away or i < 2]
    rng = np.random.default_rng(seed)
    vectors = {m: rng.uniform(-reach, reach, size) for m in present}
    for vector in vectors.values():
        vector[0], vector[-1] = reach, -reach
    answer = session.play(during, terms, vectors)
    assert np.abs(answer.total["weights"] - sum(vectors.values())).max() <= code.error(terms, during)
    assert code.error(terms, during) <= 1.01 * n * reach * 2.0 ** -min(precision, 48)


def test_what_is_on_a_grid_already_comes_out_on_it() -> None:
    members, code = names(5), CkksSum()
    during, session = cohort(members), Session(code, members)
    terms = code.admit(Terms((Block("a", (50,)),), reach=8.0, grid=2.0**-20), during)
    session.prepare()
    rng = np.random.default_rng(0)
    vectors = {m: rng.integers(-(2**23), 2**23, 50) * 2.0**-20 for m in members}
    assert np.array_equal(session.play(during, terms, vectors).total["a"], sum(vectors.values()))


@pytest.mark.parametrize("code", [BfvSum(), CkksSum()])
def test_below_the_threshold_there_is_no_sum(code: Aggregation) -> None:
    members = names(5)
    session, during = Session(code, members), cohort(members, threshold=4)
    terms = code.admit(whole_terms(3, reach=9.0), during)
    session.prepare()
    with pytest.raises(TooFewParties):
        session.play(during, terms, whole_vectors(members[:3], 3, 9, 0))
    with pytest.raises(UnknownRound):  # nothing was opened
        session.seats[COORDINATOR].answer(during.round_id)
    for member in members:
        with pytest.raises(UnknownRound):
            session.seats[member].answer(during.round_id)


@pytest.mark.parametrize("code", [BfvSum(), CkksSum()])
def test_one_party_is_no_sum_whatever_the_threshold(code: Aggregation) -> None:
    members = names(3)
    session, during = Session(code, members), cohort(members, threshold=1)
    terms = code.admit(whole_terms(3, reach=9.0), during)
    session.prepare()
    with pytest.raises(TooFewParties):
        session.play(during, terms, whole_vectors(members[:1], 3, 9, 0))


def test_the_coordinator_gets_no_total() -> None:
    members, code = names(3), BfvSum()
    session, during = Session(code, members), cohort(members)
    session.prepare()
    session.play(during, code.admit(whole_terms(3, reach=9.0), during), whole_vectors(members, 3, 9, 0))
    answer = session.seats[COORDINATOR].answer(during.round_id)
    assert answer.total is None
    assert not answer.each
    assert answer.survivors == members


def test_values_beyond_the_reach_are_clamped_and_counted_at_the_party_alone() -> None:
    members, code = names(2), BfvSum()
    session, during = Session(code, members), cohort(members)
    session.prepare()
    vectors = {members[0]: np.array([5, 50, -50]), members[1]: np.array([1, 1, 1])}
    answer = session.play(during, code.admit(whole_terms(3, reach=9.0), during), vectors)
    assert answer.total["counts"].tolist() == [6, 10, -8]
    assert int.from_bytes(session.stores[members[0]]["clamped"]) == 2
    assert "clamped" not in session.stores[members[1]]


def test_noise_never_comes_near_the_next_number_in_the_largest_cohort() -> None:
    """The measured noise budget of a sum of 400 ciphertexts: one bit is what the bound leaves in the worst case."""
    parties, reach = 400, 1000
    fit, code = cheapest(parties, reach), BfvCode()
    assert fit is not None
    ternary, running = draw_ternary(OperatingSystem()), RunningSum(code, fit)
    row = np.full((1, DEGREE), reach)
    for _ in range(parties):
        running.add(*encrypt(code, fit, ternary, row, OperatingSystem()))
    context = context_of(*code.context_key(fit))
    decryptor = context.api.Decryptor(context.native, context.secret_key(ternary))
    assert decryptor.invariant_noise_budget(running._held[0]) >= 1
    assert (decrypt(code, fit, ternary, *running.polynomials()) == parties * reach).all()


def test_the_noise_of_a_fresh_ciphertext_is_bounded() -> None:
    """CKKS with everything but the noise zero: the largest is at most 21, its variance that of 42 coins."""
    fit, code = cheapest(2, 2**20), CkksCode()
    assert fit is not None
    ternary = draw_ternary(OperatingSystem())
    context = context_of(*code.context_key(fit))
    decryptor = context.api.Decryptor(context.native, context.secret_key(ternary))
    encoder = context.api.CKKSEncoder(context.native)
    encryptor, found = context.api.Encryptor(context.native, context.secret_key(ternary)), []
    for plaintext in code.write(context, np.zeros((100, DEGREE), dtype=np.int64), fit):
        held, opened = context.api.Ciphertext(), context.api.Plaintext()
        encryptor.encrypt_symmetric(plaintext, held)
        decryptor.decrypt(held, opened)
        found.append(polynomial_of(np.array(encoder.decode_complex(opened))) * fit.step)
    noise = np.concatenate(found)
    assert np.abs(noise - np.rint(noise)).max() < 0.01
    assert np.abs(noise).max() <= 21.5
    assert abs(noise.var() - 10.5) < 0.2


# ---- sessions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [BfvSum(), CkksSum()])
def test_a_seat_that_starts_again_goes_on(code: Aggregation) -> None:
    members = names(3)
    session = Session(code, members)
    session.prepare()
    for number, name in enumerate((*members, COORDINATOR)):
        session.restart(name)
        assert session.seats[name].prepared > 10**6
        during = cohort(members, number)
        vectors = whole_vectors(members, 4, 9, number)
        answer = session.play(during, code.admit(whole_terms(4, reach=9.0), during), vectors)
        assert np.array_equal(answer.total["counts"], sum(vectors.values()))
        for member in members:
            session.restart(member)
            again = session.seats[member].answer(during.round_id)
            assert np.array_equal(again.total["counts"], answer.total["counts"])
            assert again.survivors == answer.survivors


def test_a_party_that_starts_again_in_the_middle_of_the_set_up_and_of_a_round() -> None:
    members, code = names(2), BfvSum()
    session = Session(code, members)
    middle = session.seats[COORDINATOR].prepare(1)
    hellos = {m: session.seats[m].prepare(1).begin()[0][1] for m in members}
    session.restart(members[0])
    for m in members:
        middle.receive(m, hellos[m])
    ((drawer, bundle),) = middle.expire(())
    sealed = session.seats[drawer].prepare(1).receive(COORDINATOR, bundle)[0][1]
    session.restart(members[1])
    middle.receive(drawer, sealed)
    ((to, key),) = middle.expire(())
    middle.receive(to, session.seats[to].prepare(1).receive(COORDINATOR, key)[0][1])
    during = cohort(members)
    terms = code.admit(whole_terms(2, reach=9.0), during)
    vectors = whole_vectors(members, 2, 9, 0)
    adding = session.seats[COORDINATOR].round(during, terms, None)
    for m in members:
        sent = session.seats[m].round(during, terms, {"counts": vectors[m]}).begin()[0][1]
        adding.receive(m, sent)
        session.restart(m)
    for m, message in adding.expire(()):
        session.seats[m].round(during, terms, {"counts": vectors[m]}).receive(COORDINATOR, message)
        assert np.array_equal(session.seats[m].answer(during.round_id).total["counts"], sum(vectors.values()))


def test_who_misses_the_set_up_holds_no_key_and_the_next_draws_it() -> None:
    members, code = names(4), BfvSum()
    session = Session(code, members)
    session.prepare(present=members[1:])
    assert session.seats[members[0]].prepared == 0
    during = cohort(members)
    terms = code.admit(whole_terms(2, reach=9.0), during)
    vectors = whole_vectors(members, 2, 9, 0)
    answer = session.play(during, terms, {m: vectors[m] for m in members[1:]})
    assert answer.survivors == members[1:]
    with pytest.raises(NoSumKey):
        session.seats[members[0]].round(during, terms, {"counts": vectors[members[0]]}).begin()


def test_if_the_one_who_draws_leaves_the_next_one_draws() -> None:
    members, code = names(3), BfvSum()
    session = Session(code, members)
    middle = session.seats[COORDINATOR].prepare(1)
    exchanges = {m: session.seats[m].prepare(1) for m in members}
    for m in members:
        middle.receive(m, exchanges[m].begin()[0][1])
    assert [to for to, _ in middle.expire(())] == [members[0]]
    ((to, bundle),) = middle.expire([members[0]])
    assert to == members[1]
    middle.receive(to, exchanges[to].receive(COORDINATOR, bundle)[0][1])
    assert [name for name, _ in middle.expire(())] == [members[2]]


def test_each_set_up_makes_a_new_key() -> None:
    members = names(2)
    session = Session(BfvSum(), members)
    found = set()
    for _ in range(3):
        session.prepare()
        found.add(session.stores[members[0]]["sum key"])
    assert len(found) == 3


def test_two_ciphertexts_of_one_vector_differ_in_everything() -> None:
    """A generator that SEAL restarts at each encryption would give every ciphertext the same random half."""
    members, code = names(2), BfvSum()
    for seed in ("", "a seed"):
        session, during = Session(code, members, seed), cohort(members)
        session.prepare()
        size = 3 * DEGREE
        terms = code.admit(whole_terms(size, reach=9.0), during)
        sent = session.seats[members[0]].round(during, terms, {"counts": np.zeros(size, dtype=np.int64)}).begin()[0][1]
        seeds = np.frombuffer(sent[-3 * 64 :], dtype=np.uint8).reshape(3, 64)
        assert len(np.unique(seeds, axis=0)) == 3
