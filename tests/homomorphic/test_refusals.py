"""What BFV and CKKS refuse before any document is read, and on the way there: each by name, each with a hint."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.aggregation.homomorphic.ckks import CkksSum
from securetm.aggregation.homomorphic.parameters import DEGREE, MODULI, cheapest, from_digits, to_digits
from securetm.contracts import Aggregation, Block, Claim, Domain, Needs, Noised, Terms
from securetm.errors import (
    BadSetting,
    BrokenPromise,
    Mistake,
    NeedsIntegers,
    NeedsReach,
    NeedsSum,
    SumTooWide,
    Unsound,
)
from securetm.sessions.framing import HASH
from tests.homomorphic.sessions import COORDINATOR, Session, Store, cohort, identity, names

LAYOUT = (Block("a", (4,)),)
BOTH = pytest.mark.parametrize("code", [BfvSum(), CkksSum()])


@BOTH
def test_each_partys_own_vector_is_refused(code: Aggregation) -> None:
    for terms in (Terms(LAYOUT, needs=Needs.EACH), Terms(LAYOUT, needs=Needs.EACH, ragged=True)):
        with pytest.raises(NeedsSum) as caught:
            code.admit(terms, cohort(names(3)))
        assert "sketch" in caught.value.advice()


def test_bfv_refuses_real_numbers() -> None:
    with pytest.raises(NeedsIntegers):
        BfvSum().admit(Terms(LAYOUT, reach=1.0), cohort(names(3)))


def test_ckks_refuses_a_range_that_nobody_promised() -> None:
    with pytest.raises(NeedsReach):
        CkksSum().admit(Terms(LAYOUT), cohort(names(3)))
    assert CkksSum(span=8.0).admit(Terms(LAYOUT), cohort(names(3))).reach == 8.0


def test_what_does_not_fit_is_refused_with_the_number_of_parties() -> None:
    many = cohort(names(2**20))
    for code, terms in (
        (BfvSum(), Terms(LAYOUT, domain=Domain.INTEGER, bits=64, reach=2.0**40)),
        (BfvSum(), Terms(LAYOUT, domain=Domain.INTEGER, bits=8, reach=100.0)),
        (CkksSum(precision_bits=52), Terms(LAYOUT, reach=1.0)),
    ):
        with pytest.raises(SumTooWide) as caught:
            code.admit(terms, many)
        assert isinstance(caught.value, Unsound)
        assert str(2**20) in str(caught.value)
    with pytest.raises(SumTooWide):
        CkksSum().admit(Terms(LAYOUT, reach=1.0, grid=2.0**-60), cohort(names(2)))


@pytest.mark.parametrize("wrong", [{"span": 0.0}, {"span": float("nan")}, {"precision_bits": 1}, {"precision_bits": 53}])
def test_senseless_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadSetting):
        CkksSum(**wrong)  # type: ignore[arg-type]


@BOTH
def test_admitting_twice_changes_nothing(code: Aggregation) -> None:
    """All roles derive the parameters from admitted terms, so they must be a fixed point."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        parties = int(rng.integers(2, 400))
        terms = Terms(LAYOUT, domain=Domain.INTEGER, bits=64, reach=float(2.0 ** rng.uniform(0, 70)))
        if isinstance(code, CkksSum) and rng.random() < 0.7:
            terms = Terms(LAYOUT, reach=float(2.0 ** rng.uniform(-40, 70)))
        during = cohort(names(parties))
        once, fit = code.fit(terms, during)  # type: ignore[attr-defined]
        assert code.fit(once, during) == (once, fit)  # type: ignore[attr-defined]
        assert fit.holds


@BOTH
def test_noise_and_sampling_pass_through_the_terms(code: Aggregation) -> None:
    terms = Terms(LAYOUT, domain=Domain.INTEGER, noised=Noised.SHARE, deviation=3.0, grid=0.5, reach=100.0, sampling=0.25)
    admitted = code.admit(terms, cohort(names(3)))
    assert admitted == replace(terms, reach=admitted.reach)


@BOTH
def test_the_claim_names_its_collusion_limit(code: Aggregation) -> None:
    assert code.claims(cohort(names(9))) == frozenset({Claim("sees only sums", COORDINATOR, colluding=0)})
    assert (code.opened_by, code.channel) == ("parties", "sealed")


def test_the_primes_are_primes_that_the_standard_allows() -> None:
    for modulus in MODULI:
        assert modulus.value % 4096 == 1
        assert modulus.value.bit_length() == modulus.bits <= 54
        assert -(-modulus.bits // 8) == modulus.width
        assert all(pow(base, modulus.value - 1, modulus.value) == 1 for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37))


def test_digits_come_together_again() -> None:
    rng = np.random.default_rng(0)
    for bits in (5, 31, 45, 62):
        for parties in (2, 40):
            reach = 2**bits // parties
            fit = cheapest(parties, reach)
            assert fit is not None
            rows = [rng.integers(-reach, reach, 2 * DEGREE + 3, endpoint=True) for _ in range(parties)]
            rows[0][:2] = rows[1][:2] = [reach, -reach]
            digits = [to_digits(row, fit) for row in rows]
            assert max(np.abs(part).max() for part in digits) <= fit.digit_reach
            assert np.array_equal(from_digits(sum(digits), fit, 2 * DEGREE + 3), sum(rows))


@BOTH
def test_values_that_are_not_finite_count_as_nothing_and_only_at_the_party(code: Aggregation) -> None:
    members = names(2)
    session, during = Session(code, members), cohort(members)
    terms = code.admit(Terms(LAYOUT, domain=Domain.INTEGER, reach=9.0), during)
    for broken in (np.nan, np.inf):
        opened = session.seats[members[0]].round(during, terms, {"a": np.array([0.0, 1.0, broken, 2.0])})
        assert opened.numbers.tolist() == [0, 1, 0, 2]
    with pytest.raises(BrokenPromise):
        session.seats[members[0]].round(during, terms, {"a": np.zeros(5, dtype=np.int64)})


def test_a_party_without_an_identity_takes_no_part() -> None:
    session = Session(BfvSum(), names(2))
    session.stores["party00"] = Store()
    with pytest.raises(Mistake, match="this party's own private key is missing,"):
        session.restart("party00")


def test_the_secret_key_reaches_the_coordinator_in_no_message() -> None:
    members = names(3)
    session, during = Session(BfvSum(), members), cohort(members)
    session.prepare()
    terms = BfvSum().admit(Terms(LAYOUT, domain=Domain.INTEGER, reach=9.0), during)
    session.play(during, terms, {m: np.arange(4) for m in members})
    secret = session.stores[members[0]]["sum key"][HASH:]
    passed = b"".join(m for _, m in session.seen + session.told)
    assert all(secret[i : i + 16] not in passed for i in range(0, len(secret), 16))
    assert all(identity(m) not in passed for m in members)
    assert not any(secret[:16] in value for value in session.stores[COORDINATOR].values())


def test_importing_the_parts_does_not_load_the_library() -> None:
    code = "import sys, securetm.aggregation.homomorphic.ckks; sys.exit('tenseal' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
