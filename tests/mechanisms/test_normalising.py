"""Topic-wise normalisation: shares that sum to one, no topic that is not a number, and counts that come back all the same."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np
import pytest

from securetm.contracts import Array, Block, Domain, Mechanism, Needs, Noised, Terms, Unit
from securetm.mechanisms.normalising import TopicWise
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, context, integer_terms

OWN = Terms((Block("topics", (4, 6)),), needs=Needs.EACH, ragged=True, unit=Unit.PARTY)


class TestTopicWise(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return TopicWise()

    @pytest.fixture(params=["sum", "each"])
    def before(self, request: pytest.FixtureRequest) -> Terms:
        return integer_terms() if request.param == "sum" else replace(OWN, ragged=False)

    test_bound = None  # type: ignore[assignment]  # it states none
    test_vectors_keep_their_shape_and_kind = None  # type: ignore[assignment]  # ragged ones below
    test_honesty = None  # type: ignore[assignment]  # it adds no noise
    test_honesty_when_parties_drop_out_and_collude = None  # type: ignore[assignment]


def normalised(rows: Array, terms: Terms = OWN) -> Array:
    return TopicWise().on_vector(rows, TopicWise().admit(terms, COHORT), context())


def test_topics_sum_to_one_and_the_amount_of_data_stays() -> None:
    rows = np.array([[1, 2, 0, 0, 1, 100], [0, 0, 0, 0, 0, 100], [0, 0, 7, 0, 0, 100]], dtype=np.float32)
    kept = rows.copy()
    sent = normalised(rows)
    np.testing.assert_allclose(sent[:, :-1].sum(axis=1), [1, 0, 1])
    np.testing.assert_array_equal(sent[0], np.float32([0.25, 0.5, 0, 0, 0.25, 100]))
    np.testing.assert_array_equal(sent[1], [0, 0, 0, 0, 0, 100])  # zeros, not NaN and not made up
    np.testing.assert_array_equal(rows, kept)
    assert (sent.shape, sent.dtype) == (rows.shape, np.float32)
    assert normalised(rows, replace(OWN, bits=64)).dtype == np.float64


def test_whole_numbers_become_shares() -> None:
    counted = replace(OWN, domain=Domain.INTEGER, noised=Noised.WHOLE)
    assert TopicWise().admit(counted, COHORT) == replace(counted, domain=Domain.REAL)
    np.testing.assert_allclose(normalised(np.array([[1, 3, 0, 0, 0, 9]]), counted), [[0.25, 0.75, 0, 0, 0, 9]])


@pytest.mark.parametrize("terms", [replace(OWN, needs=Needs.SUM), replace(OWN, layout=(Block("words", (4, 6)),))])
def test_other_vectors_pass(terms: Terms) -> None:
    rows = np.ones((2, 6))
    assert TopicWise().admit(terms, COHORT) == terms
    assert TopicWise().on_vector(rows, terms, context()) is rows


def test_it_claims_and_spends_nothing_for_the_counts_come_back() -> None:
    assert TopicWise().claims(COHORT) == frozenset()
    assert TopicWise().event(OWN, COHORT) is None
    counts = np.random.default_rng(0).poisson(3.0, (4, 5)) + 1
    sent = normalised(np.column_stack([counts, np.full(4, 60)]).astype(np.float32))
    for row, true in zip(sent[:, :-1], counts, strict=True):
        shares = [Fraction(float(share)).limit_denominator(200) for share in row]
        whole = lcm(*(share.denominator for share in shares))
        found = np.array([int(share * whole) for share in shares])
        assert np.array_equal(found * (true.sum() // found.sum()), true)
