"""iFTM's noise on counts: what it refuses, states and spends, and when its secret is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.contracts import INF, Array, Claim, Domain, Mechanism, Noised, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mismatch
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.noising import PRIVATE
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.testing.few_documents import EmptyStore, some_documents
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, context, each_terms
from tests.mechanisms.noisy import REAL
from tests.mechanisms.word_noise import ASKED, SECRET, documents, lasting, shelf

KINDS = pytest.mark.parametrize("distribution", ["discrete", "continuous"])


@pytest.mark.parametrize("distribution", ["discrete", "continuous"])
class TestLaplaceCounts(MechanismLaws):
    """The laws of rows and vectors. Its noise is not on them: `test_slot_noise` holds it to its own law."""

    test_honesty = None  # type: ignore[assignment]
    test_honesty_when_parties_drop_out_and_collude = None  # type: ignore[assignment]
    test_the_event_spends_no_less_than_the_noise_hides = None  # type: ignore[assignment]
    test_the_event_claims_no_more_amplification_than_the_sampling_gives = None  # type: ignore[assignment]

    @pytest.fixture
    def mechanism(self, distribution: str) -> Mechanism:
        return LaplaceCounts(1.0, distribution=distribution)

    @pytest.fixture
    def before(self, distribution: str) -> Terms:
        return replace(ASKED if distribution == "discrete" else REAL, unit=Unit.WORD, l2=INF)

    def noise(self, mechanism: Mechanism, admitted: Terms, cohort: Any = COHORT) -> Array:
        noised: Array = mechanism.on_documents(some_documents(), ASKED, context()).counts.toarray()
        return noised


# ---- what is admitted --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": INF},
        {"epsilon": 1e-4},
        {"epsilon": 8.0, "threshold": -0.1},
        {"epsilon": 8.0, "threshold": INF},
        {"epsilon": 101.0},
        {"epsilon": 50.0, "threshold": 2.1},
        {"epsilon": 8.0, "distribution": "gaussian"},
    ],
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        LaplaceCounts(**settings)


@pytest.mark.parametrize(
    ("terms", "refusal"),
    [
        (replace(ASKED, unit=Unit.PERSON), "rows are per person"),
        (replace(ASKED, noised=Noised.SHARE), "carries shares of noise"),
        (replace(ASKED, sampling=0.1), "once for a whole corpus"),
        (LaplaceCounts(8.0).admit(ASKED, COHORT), "carries shares of noise"),
    ],
)
def test_what_it_cannot_protect_is_refused(terms: Terms, refusal: str) -> None:
    with pytest.raises(Mismatch, match=refusal):
        LaplaceCounts(8.0).admit(terms, COHORT)


def test_the_paper_as_printed_is_refused_by_name() -> None:
    printed = LaplaceCounts(8.0, raw=True)
    for terms in (ASKED, each_terms(), replace(ASKED, names_words=True)):
        with pytest.raises(Mismatch, match="no finite epsilon"):
            printed.admit(terms, COHORT)
    with pytest.raises(Mismatch, match="the exact counts of words would be"):
        printed.on_documents(documents(), ASKED, lasting())


@pytest.mark.parametrize("change", [{"names_words": True}, {"data_only": True}, {"noised": Noised.WHOLE}])
def test_other_questions_stay_as_they_are(change: dict[str, Any]) -> None:
    """So a budget refuses them, unless another mechanism protects them; and they read the words themselves."""
    terms, corpus, mechanism = replace(ASKED, **change), documents(), LaplaceCounts(8.0)
    assert mechanism.admit(terms, COHORT) == terms
    assert mechanism.event(terms, COHORT) is None
    assert mechanism.failure_probability(terms, COHORT) == 0
    assert mechanism.on_documents(corpus, terms, lasting()) is corpus
    assert not mechanism.remembers(corpus, terms, lasting(shelf(SECRET)))


@pytest.mark.parametrize(
    ("distribution", "before", "after"),
    [
        ("discrete", ASKED, Domain.INTEGER),
        ("discrete", REAL, Domain.REAL),
        ("continuous", ASKED, Domain.REAL),
        ("continuous", REAL, Domain.REAL),
        ("continuous", replace(ASKED, grid=0.5), Domain.INTEGER),
        ("discrete", each_terms(), Domain.REAL),
    ],
)
def test_the_terms_afterwards(distribution: str, before: Terms, after: Domain) -> None:
    admitted = LaplaceCounts(8.0, distribution=distribution).admit(before, COHORT)
    assert (admitted.noised, admitted.unit, admitted.domain) == (Noised.WHOLE, Unit.WORD, after)
    assert admitted.l1 == admitted.l2 == admitted.linf == INF
    assert admitted.deviation == SlotNoise(1, 8.0, 0.2, distribution == "discrete").deviation


# ---- what is spent and claimed ---------------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("epsilon", [1.0, 8.0, 11.0])
def test_it_spends_epsilon_for_a_word(distribution: str, epsilon: float) -> None:
    mechanism = LaplaceCounts(epsilon, distribution=distribution)
    admitted = mechanism.admit(ASKED, COHORT)
    assert mechanism.failure_probability(admitted, COHORT) == 0
    spend = Spend(mechanism.event(admitted, COHORT))
    assert total([spend], 1e-12).epsilon == pytest.approx(epsilon, abs=1e-6)
    assert total([spend], 0.0).epsilon == pytest.approx(epsilon)


def test_claims_are_of_single_words() -> None:
    claims = LaplaceCounts(8.0).claims(COHORT)
    assert {claim.unit for claim in claims} == {Unit.WORD}
    assert Claim(PRIVATE, "coordinator", 3, Unit.WORD) in claims
    assert Claim(PRIVATE, "party", 2, Unit.WORD) in claims


# ---- the secret ------------------------------------------------------------------------------------------------------


def test_the_secret_lasts_and_is_drawn_once() -> None:
    corpus, mechanism, here = documents(), LaplaceCounts(1.0), lasting()
    assert mechanism.once
    assert not mechanism.remembers(corpus, ASKED, here)
    first = mechanism.on_documents(corpus, ASKED, here)
    assert mechanism.remembers(corpus, ASKED, here)
    (key, secret), kept = next(iter(here.lasting.kept.items())), here.store.kept  # type: ignore[union-attr,attr-defined]
    assert (len(secret), kept) == (32, {})
    again = mechanism.on_documents(documents(), ASKED, replace(context(), lasting=here.lasting))
    assert again is not first
    assert (again.counts != first.counts).nnz == 0
    other = mechanism.on_documents(documents(), ASKED, lasting())
    assert (other.counts != first.counts).nnz > 0
    assert key not in repr(first)


def test_the_secret_is_on_disk_before_it_is_used() -> None:
    class Full(EmptyStore):
        def put(self, key: str, value: bytes) -> None:
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        LaplaceCounts(1.0).on_documents(documents(), ASKED, lasting(Full({})))


def test_other_content_meets_other_noise() -> None:
    """Every part that the counts are a function of is in the name of the secret."""
    corpus, here = documents(), lasting()
    tokens = corpus.tokens.copy()  # type: ignore[union-attr]
    tokens[7] = (tokens[7] + 1) % 40
    others = [
        corpus.replace(tokens=tokens),
        corpus.replace(keys=corpus.keys + np.uint64(1)),
        corpus.replace(vocabulary=(*corpus.vocabulary[1:], "another")),
        corpus.replace(sentence_ends=np.array([3, 10, 50])),
        corpus.replace(token_ends=np.array([2, 3, 10, 50])),
        corpus.select(np.array([0, 1, 2])),
        corpus.replace(tokens=None, token_ends=None, sentence_ends=None),
    ]
    mechanisms = [LaplaceCounts(1.0, threshold=0.3), LaplaceCounts(1.1), LaplaceCounts(1.0, distribution="continuous")]
    mechanisms.append(LaplaceCounts(1.0 + 2.0**-40))  # whose stretches of the keystream are as long
    tried = [(LaplaceCounts(1.0), one) for one in (corpus, *others)] + [(one, corpus) for one in mechanisms]
    for n, (mechanism, one) in enumerate(tried):
        assert not mechanism.remembers(one, ASKED, here)
        mechanism.on_documents(one, ASKED, here)
        assert len(set(here.lasting.kept.values())) == n + 1  # type: ignore[union-attr,attr-defined]


def test_numbers_that_say_other_words_in_another_form_meet_other_noise() -> None:
    """Two corpora under one secret would be two answers for the price of one, and what differs between them no noise hides.

    Where the counts of "c" twice begin and end are the same numbers as the tokens "a b" are.
    """
    listed, here = ("a", "b", "c"), lasting()
    counted = Corpus.from_counts(np.array([[0, 0, 2]]), listed, name="one")
    ordered = Corpus.from_tokens(np.array([0, 1]), np.array([2]), listed, name="one")
    counted, ordered = counted.named_by_place(), ordered.named_by_place()  # as where words are protected
    assert np.array_equal(counted.keys, ordered.keys)
    mechanism = LaplaceCounts(8.0)
    mechanism.on_documents(counted, ASKED, here)
    assert not mechanism.remembers(ordered, ASKED, here)
    mechanism.on_documents(ordered, ASKED, here)
    assert len(set(here.lasting.kept.values())) == 2  # type: ignore[union-attr,attr-defined]


def test_a_corpus_is_noised_once_a_process() -> None:
    corpus, here = documents(), lasting()
    first = LaplaceCounts(1.0).on_documents(corpus, ASKED, here)
    assert LaplaceCounts(1.0).on_documents(corpus, ASKED, here) is first
    assert LaplaceCounts(1.0).on_documents(corpus, ASKED, lasting()) is not first


def test_noised_documents_are_not_noised_again() -> None:
    noised = LaplaceCounts(1.0).on_documents(documents(), ASKED, lasting())
    with pytest.raises(Mismatch, match="meets a vector that already carries shares"):
        LaplaceCounts(1.0).on_documents(noised, ASKED, lasting())
