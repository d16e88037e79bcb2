"""Parties as the papers make them: equal sizes, and mixtures of labels from one label each to all alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import by_column, dirichlet, equal
from securetm.errors import BadSetting, Mistake

SIZES = (500, 300, 200)


def labelled(sizes: tuple[int, ...] = SIZES) -> Corpus:
    labels = np.repeat([f"label {i}" for i in range(len(sizes))], sizes)
    return Corpus.from_counts(np.ones((len(labels), 1), dtype=int), ["x"], labels=labels)


def test_by_column() -> None:
    corpus = Corpus.from_strings(["wing", "hoof", "tail"], labels=["b", "a", "b"], parties=["", "p", "p"])
    assert {name: len(part) for name, part in by_column(corpus, "label").items()} == {"a": 1, "b": 2}
    parts = by_column(corpus)
    assert {name: part.keys.tolist() for name, part in parts.items()} == {
        "unnamed": [corpus.keys[0]],
        "p": corpus.keys[1:].tolist(),
    }
    with pytest.raises(Mistake, match="date"):
        by_column(corpus, "date")
    with pytest.raises(BadSetting, match="column"):
        by_column(corpus, "keys")  # type: ignore[arg-type]


@given(st.integers(1, 4), st.integers(0, 99))
def test_equal_deals_every_document_once_to_parties_of_about_one_size(parties: int, seed: int) -> None:
    corpus = labelled((300, 200, 110))
    parts = equal(corpus, parties, seed)
    assert list(parts) == sorted(parts)
    assert sorted(key for part in parts.values() for key in part.keys) == sorted(corpus.keys)
    each = 610 / parties
    assert all(abs(len(part) - each) < 6.2 * np.sqrt(each) for part in parts.values())


@given(st.integers(1, 4), st.floats(0.5, 1e9), st.integers(0, 99))
def test_dirichlet_deals_every_document_once(parties: int, alpha: float, seed: int) -> None:
    corpus = labelled()
    try:
        parts = dirichlet(corpus, parties, alpha, seed)
    except BadSetting:
        return  # a party may get nothing, and is named then
    assert sorted(key for part in parts.values() for key in part.keys) == sorted(corpus.keys)
    again = dirichlet(corpus, parties, alpha, seed)
    assert [part.keys.tolist() for part in again.values()] == [part.keys.tolist() for part in parts.values()]


@pytest.mark.parametrize("alpha", [1e-6, 1e-320])
def test_a_small_alpha_gives_every_label_to_one_party(alpha: float) -> None:
    corpus, met = labelled(tuple([6] * 60)), []
    for part in dirichlet(corpus, 4, alpha).values():
        met += list(np.unique(part.labels))
    assert len(met) == len(set(met)) == 60


def test_in_between_a_label_is_shared_out_as_a_dirichlet_does() -> None:
    """Var q_p = 1/P (1 - 1/P) / (P alpha + 1), to which drawing n documents adds its own share."""
    alpha, parties, documents = 1.0, 4, 500
    held = []
    for seed in range(40):
        for part in dirichlet(labelled((500, 500, 500)), parties, alpha, seed).values():
            held += [float(np.sum(part.labels == "label 0")) / documents]
    each, spread = 1 / parties, 1 / (parties * alpha + 1)
    variance = each * (1 - each) * (spread + (1 - spread) / documents)
    assert abs(np.mean(held) - each) < 0.01
    assert abs(np.var(held) / variance - 1) < 0.4


def test_who_holds_a_document_depends_on_no_other_document_and_on_no_place() -> None:
    """One other document goes, the file is shuffled, a label is there no more: everybody else stays where they were."""
    corpus, rng = labelled((100, 60, 1)), np.random.default_rng(0)
    for deal in (lambda some: equal(some, 3, 5), lambda some: dirichlet(some, 3, 0.7, 5)):
        where = {int(key): name for name, part in deal(corpus).items() for key in part.keys}
        for rows in (np.arange(160), np.arange(1, 161), rng.permutation(161)):
            for name, part in deal(corpus.select(rows)).items():
                assert all(where[int(key)] == name for key in part.keys)


def test_persons_stay_whole_unless_single_documents_are_protected() -> None:
    texts = [f"note number {chr(97 + n // 26)}{chr(97 + n % 26)}word" for n in range(200)]
    corpus = Corpus.from_strings(texts, persons=[f"p{n % 40}" for n in range(200)], labels=[f"l{n % 3}" for n in range(200)])
    for deal in (equal, lambda some, parties, **more: dirichlet(some, parties, 1.0, **more)):
        parts = [set(part.persons.tolist()) for part in deal(corpus, 3).values()]  # type: ignore[union-attr]
        assert sum(map(len, parts)) == 40
        apart = [set(part.persons.tolist()) for part in deal(corpus, 3, persons_whole=False).values()]  # type: ignore[union-attr]
        assert sum(map(len, apart)) > 40


def test_refusals() -> None:
    with pytest.raises(BadSetting, match="`parties`"):
        equal(labelled((1, 1, 0)), 3)
    with pytest.raises(BadSetting, match="`parties`"):
        dirichlet(labelled(), 0, 1.0)
    with pytest.raises(BadSetting, match="leaves party-1 without a document"):
        dirichlet(Corpus.from_strings(["wing", "hoof", "tail"], labels=["a", "a", "a"]), 3, 1e-6)
    with pytest.raises(Mistake, match="the documents have no"):
        dirichlet(Corpus.from_strings(["wing"]), 1, 1.0)
    for alpha in (0.0, -1.0, float("nan")):
        with pytest.raises(BadSetting):
            dirichlet(labelled(), 2, alpha)
