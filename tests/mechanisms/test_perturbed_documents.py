"""Documents behind iFTM's noise: nothing shows but noised counts, whatever is selected, cut out or drawn from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import CountsNotWhole
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.mechanisms.perturbed_documents import PerturbedDocuments, RegeneratedSlots, StoredSlots
from securetm.mechanisms.sampling import PoissonSample, ShuffledBatches
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.testing.mechanism_laws import COHORT, context
from tests.mechanisms.word_noise import ASKED, SECRET, documents, lasting, shelf

KINDS = pytest.mark.parametrize("distribution", ["discrete", "continuous"])


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
