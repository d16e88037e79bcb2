"""iFTM's noise on words: what it refuses, states and spends, when its secret is drawn, and that nothing else shows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.contracts import INF, Array, Claim, Domain, Mechanism, Noised, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, CountsNotWhole, Mismatch
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.noising import PRIVATE
from securetm.mechanisms.perturbed_documents import PerturbedDocuments, RegeneratedSlots, StoredSlots
from securetm.mechanisms.sampling import PoissonSample, ShuffledBatches
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.testing.few_documents import EmptyStore, some_documents
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, context, each_terms

from .noisy import REAL
from .word_noise import ASKED, SECRET, documents, lasting, shelf

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


# ---- documents behind it ---------------------------------------------------------------------------------------------------


def noised(corpus: Any, epsilon: float, distribution: str) -> PerturbedDocuments:
    made: PerturbedDocuments = LaplaceCounts(epsilon, distribution=distribution).on_documents(
        corpus, ASKED, lasting(shelf(SECRET))
    )
    return made


def shown(made: PerturbedDocuments) -> dict[str, Any]:
    """All that can be read of them."""
    facts: dict[str, Any] = {"said": repr(made), "length": len(made), "slots": len(made.perturbed)}
    for name in (name for name in dir(made) if not name.startswith("_")):
        value = getattr(made, name)
        if isinstance(value, np.ndarray | tuple | None):
            facts[name] = value
    facts["counts"] = made.counts.toarray()
    facts["whole"], facts["between"] = made.perturbed.whole, made.perturbed.between(0, len(made.perturbed))
    return facts


@KINDS
def test_the_same_noised_counts_show_the_same(distribution: str) -> None:
    """Two corpora that differ in words, and of which the same secret leaves the same: no byte tells them apart."""
    law = SlotNoise(40, 0.5, 0.2, distribution == "discrete")
    tables = []
    for word in (4, 9):
        ends, ids, weights = law.draw(SECRET, np.full(50, word, dtype=np.int32), 0)
        tables.append([(tuple(ids[a:b]), tuple(weights[a:b])) for a, b in pairwise(ends)])
    alike = [slot for slot, (one, other) in enumerate(zip(*tables, strict=True)) if one == other]
    assert len(alike) >= 2
    first, second = documents().tokens.copy(), documents().tokens.copy()  # type: ignore[union-attr]
    first[alike], second[alike] = 4, 9
    corpora = [
        Corpus.from_tokens(one, documents().token_ends, documents().vocabulary, sentence_ends=documents().sentence_ends)
        for one in (first, second)
    ]
    assert (corpora[0].counts != corpora[1].counts).nnz > 0
    seen = [shown(noised(corpus.named_by_place(), 0.5, distribution)) for corpus in corpora]
    assert seen[0].keys() == seen[1].keys() >= {"counts", "between", "keys", "token_ends", "sentence_ends", "vocabulary"}
    for name in seen[0]:
        np.testing.assert_equal(seen[0][name], seen[1][name], name)


@KINDS
def test_no_public_attribute_holds_a_word(distribution: str) -> None:
    corpus = documents()
    made = noised(corpus, 1.0, distribution)
    assert (made.tokens, made.embeddings, made.persons) == (None, None, None)
    assert made.perturbed.whole is (distribution == "discrete")
    for owner in (made, made.perturbed):
        values = [getattr(owner, name) for name in dir(owner) if not name.startswith("_")]
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        assert not any(np.array_equal(array, corpus.tokens) for array in arrays)
    held = [value for value in vars(made.perturbed).values() if isinstance(value, np.ndarray)]
    remembered = any(np.array_equal(array, corpus.tokens) for array in held)
    assert remembered is (distribution == "continuous")  # of discrete noise the words are forgotten altogether


@KINDS
def test_what_is_there(distribution: str) -> None:
    corpus = documents()
    made = noised(corpus, 1.0, distribution)
    np.testing.assert_array_equal(made.token_ends, corpus.token_ends)
    np.testing.assert_array_equal(made.sentence_ends, corpus.sentence_ends)  # type: ignore[arg-type]
    np.testing.assert_array_equal(made.keys, corpus.keys)
    assert made.vocabulary == corpus.vocabulary
    assert len(made.perturbed) == 50
    ends, words, weights = made.perturbed.between(0, 50)
    assert (ends.dtype, words.dtype, weights.dtype) == (np.int64, np.int32, np.float64)
    assert (weights > 0.2).all()
    table = np.zeros((4, 40))
    rows = np.repeat([0, 0, 0, *[2] * 7, *[3] * 40], np.diff(ends))
    np.add.at(table, (rows, words), weights)
    np.testing.assert_array_equal(made.counts.toarray(), table)
    assert not table[1].any()
    np.testing.assert_array_equal(table, np.rint(table * 2**15) / 2**15)  # on the grid, so sums are exact


@KINDS
def test_a_selection_keeps_its_noise(distribution: str) -> None:
    made = noised(documents(), 1.0, distribution)
    whole = made.counts.toarray()
    for rows in (
        np.array([3, 0, 2, 0]),
        np.array([1]),
        np.zeros(0, np.int64),
        np.array([True, False, True, True]),
        np.array([-1]),
    ):
        chosen = made.select(rows)
        np.testing.assert_array_equal(chosen.counts.toarray(), whole[rows])
        np.testing.assert_array_equal(chosen.keys, made.keys[rows])
    chosen = made.select(np.array([3, 0])).select(np.array([1, 0]))
    np.testing.assert_array_equal(chosen.counts.toarray(), whole[[0, 3]])
    np.testing.assert_array_equal(chosen.token_ends, [3, 43])
    np.testing.assert_array_equal(chosen.sentence_ends, [2, 3, 23, 43])  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        made.select(np.array([4]))


@KINDS
def test_slots_between(distribution: str) -> None:
    made = noised(documents(), 1.0, distribution).select(np.array([3, 0, 2]))
    ends, words, weights = made.perturbed.between(0, 50)
    for first, last in ((0, 0), (0, 1), (39, 44), (7, 50), (50, 50)):
        part = made.perturbed.between(first, last)
        np.testing.assert_array_equal(part[0], ends[first : last + 1] - ends[first])
        np.testing.assert_array_equal(part[1], words[ends[first] : ends[last]])
        np.testing.assert_array_equal(part[2], weights[ends[first] : ends[last]])


def test_much_noise_is_not_stored() -> None:
    """What would take many weights a slot is drawn again instead, be it whole or not."""
    assert isinstance(noised(documents(), 8.0, "discrete").perturbed, StoredSlots)
    assert isinstance(noised(documents(400), 0.1, "discrete").perturbed, RegeneratedSlots)
    assert isinstance(noised(documents(), 8.0, "continuous").perturbed, RegeneratedSlots)


@KINDS
def test_sums_of_many_slots_are_made_in_blocks(distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = noised(documents(), 1.0, distribution).counts.toarray()
    monkeypatch.setattr("securetm.mechanisms.perturbed_documents._DENSE", 80)
    monkeypatch.setattr("securetm.mechanisms.perturbed_documents._SLOTS", 3)
    np.testing.assert_array_equal(noised(documents(), 1.0, distribution).counts.toarray(), whole)


@KINDS
def test_counts_without_an_order_are_shuffled(distribution: str) -> None:
    """In the order of the vocabulary a word would show by the words around it."""
    counts = documents().counts
    made = noised(Corpus.from_counts(counts, documents().vocabulary), 50.0, distribution)
    np.testing.assert_array_equal(made.token_ends, [3, 3, 10, 50])
    assert made.sentence_ends is None
    np.testing.assert_allclose(made.counts.toarray(), counts.toarray(), atol=1.2)
    _, words, weights = made.perturbed.between(10, 50)
    firm = words[weights > 0.6]
    assert len(firm) == 40
    assert (np.diff(firm) < 0).any()
    unsorted = counts[:, ::-1][:, ::-1]
    again = noised(Corpus.from_counts(unsorted, documents().vocabulary), 50.0, distribution)
    assert (again.counts != made.counts).nnz == 0


def test_weights_are_no_counts() -> None:
    broken = Corpus.from_counts(np.ones((2, 3)), "abc").replace(counts=np.full((2, 3), 0.5))
    with pytest.raises(CountsNotWhole):
        LaplaceCounts(1.0).on_documents(broken, ASKED, lasting())


@KINDS
def test_degenerate_corpora(distribution: str) -> None:
    empty = Corpus.from_tokens(np.zeros(0, np.int32), np.zeros(0, np.int64), ["a"])
    assert noised(empty, 1.0, distribution).counts.shape == (0, 1)
    wordless = Corpus.from_tokens(np.zeros(0, np.int32), np.array([0, 0]), ["a", "b"])
    made = noised(wordless, 1.0, distribution)
    assert (made.counts.shape, made.counts.nnz, len(made.perturbed)) == ((2, 2), 0, 0)
    single = noised(Corpus.from_tokens(np.zeros(5, np.int32), np.array([5]), ["a"]), 1.0, distribution)
    assert single.counts.shape == (1, 1)
    nothing = noised(Corpus.from_counts(np.zeros((2, 0)), []), 1.0, distribution)
    assert nothing.counts.shape == (2, 0)


def test_batches_are_drawn_behind_the_noise() -> None:
    """Samplers that stand after it choose among noised documents, with the noise they have."""
    made = noised(documents(), 1.0, "continuous")
    asked = replace(LaplaceCounts(1.0).admit(ASKED, COHORT), batch=2)
    batch = ShuffledBatches().on_documents(made, asked, context())
    rows = [made.keys.tolist().index(key) for key in batch.keys]
    np.testing.assert_array_equal(batch.counts.toarray(), made.counts.toarray()[rows])
    admitted = PoissonSample(0.5).admit(asked, COHORT)
    assert (admitted.batch, admitted.sampling, admitted.unit) == (0, 1.0, Unit.WORD)
    assert set(PoissonSample(0.5).on_documents(made, asked, context()).keys) <= set(made.keys)
