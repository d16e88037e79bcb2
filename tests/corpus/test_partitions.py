"""Parties as the papers make them: equal sizes, and mixtures of labels from one label each to all alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_errors import NoColumn
from securetm.corpus.partitions import by_column, dirichlet, equal
from securetm.errors import BadSetting

SIZES = (500, 300, 200)


def labelled(sizes: tuple[int, ...] = SIZES) -> Corpus:
    labels = np.repeat([f"label {i}" for i in range(len(sizes))], sizes)
    return Corpus.from_counts(np.ones((len(labels), 1), dtype=int), ["x"], labels=labels)


def shares(corpus: Corpus) -> np.ndarray:
    assert corpus.labels is not None
    return np.array([np.mean(corpus.labels == f"label {i}") for i in range(len(SIZES))])


def test_by_column() -> None:
    corpus = Corpus.from_strings(["wing", "hoof", "tail"], labels=["b", "a", "b"], parties=["", "p", "p"])
    assert {name: len(part) for name, part in by_column(corpus, "label").items()} == {"a": 1, "b": 2}
    parts = by_column(corpus)
    assert {name: part.keys.tolist() for name, part in parts.items()} == {
        "unnamed": [corpus.keys[0]],
        "p": corpus.keys[1:].tolist(),
    }
    with pytest.raises(NoColumn, match="date"):
        by_column(corpus, "date")
    with pytest.raises(BadSetting, match="column"):
        by_column(corpus, "keys")  # type: ignore[arg-type]


@given(st.integers(1, 60), st.integers(0, 99))
def test_equal_deals_every_document_once(parties: int, seed: int) -> None:
    corpus = labelled((30, 20, 11))
    parts = equal(corpus, parties, seed)
    assert list(parts) == sorted(parts)
    assert sorted(key for part in parts.values() for key in part.keys) == sorted(corpus.keys)
    assert {len(part) for part in parts.values()} <= {61 // parties, 61 // parties + 1}


@given(st.integers(1, 30), st.floats(1e-320, 1e9), st.integers(0, 99))
def test_dirichlet_gives_equal_sizes_without_replacement(parties: int, alpha: float, seed: int) -> None:
    corpus = labelled((30, 20, 11))
    parts = dirichlet(corpus, parties, alpha, seed)
    assert {len(part) for part in parts.values()} == {61 // parties}
    keys = [key for part in parts.values() for key in part.keys]
    assert len(set(keys)) == len(keys) == parties * (61 // parties)
    again = dirichlet(corpus, parties, alpha, seed)
    assert [part.keys.tolist() for part in again.values()] == [part.keys.tolist() for part in parts.values()]


def test_a_great_alpha_gives_everybody_the_whole_mixture() -> None:
    for alpha in (1e9, float("inf")):
        parts = dirichlet(labelled((50_000, 30_000, 20_000)), 5, alpha)
        for part in parts.values():
            assert np.abs(shares(part) - [0.5, 0.3, 0.2]).max() < 0.03


@pytest.mark.parametrize("alpha", [1e-6, 1e-300])
def test_a_small_alpha_gives_everybody_one_label(alpha: float) -> None:
    firsts = np.zeros(3)
    for seed in range(300):
        first = shares(dirichlet(labelled((40, 24, 16)), 10, alpha, seed)["party-01"])
        assert first.max() == 1.0
        firsts += first
    assert np.abs(firsts / 300 - [0.5, 0.3, 0.2]).max() < 0.12  # which label it is, follows p


def test_in_between_the_mixture_varies_as_a_dirichlet_does() -> None:
    """Var q_i = p_i (1 - p_i) / (alpha + 1), to which drawing n documents adds its own share."""
    alpha, documents = 4.0, 100
    first = np.array([shares(dirichlet(labelled(), 10, alpha, seed)["party-01"]) for seed in range(600)])
    p = np.array([0.5, 0.3, 0.2])
    variance = p * (1 - p) * (1 / (alpha + 1) + (1 - 1 / (alpha + 1)) / documents)
    assert np.abs(first.mean(axis=0) - p).max() < 0.05
    assert np.abs(first.var(axis=0) / variance - 1).max() < 0.25


def test_refusals() -> None:
    with pytest.raises(BadSetting, match="`parties`"):
        equal(labelled((1, 1, 0)), 3)
    with pytest.raises(BadSetting, match="`parties`"):
        dirichlet(labelled(), 0, 1.0)
    with pytest.raises(NoColumn):
        dirichlet(Corpus.from_strings(["wing"]), 1, 1.0)
    for alpha in (0.0, -1.0, float("nan")):
        with pytest.raises(BadSetting):
            dirichlet(labelled(), 2, alpha)
