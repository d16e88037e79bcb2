"""What a first-time user hands to the models by mistake is refused by name, with what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import securetm
from securetm.errors import CannotWrite
from securetm.models.given_documents import UnfitDocuments

KINDS = (securetm.LDA, securetm.SentenceLDA)
COUNTS = np.array([[2, 1, 0], [0, 1, 3]] * 5)


@pytest.mark.parametrize(
    "documents",
    ["the river", [["a", "b"]], np.ones(4), np.ones((2, 2, 2)), np.zeros((5, 0)), 3, None],
    ids=["one text", "a table of texts", "one row", "a cube", "no words", "a number", "nothing"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_matrix_of_counts(kind: Any, documents: Any) -> None:
    with pytest.raises(UnfitDocuments) as refused:
        kind(n_topics=2).fit(documents, epochs=1)
    assert "Corpus.from_strings" in refused.value.advice()


@pytest.mark.parametrize(
    "matrix", [COUNTS, COUNTS.tolist(), COUNTS.astype(bool), sparse.coo_array(COUNTS), COUNTS.astype(float)]
)
def test_a_matrix_may_come_in_many_forms(matrix: Any) -> None:
    assert securetm.LDA(n_topics=2).fit(matrix, epochs=2).transform(matrix).shape == (10, 2)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model = securetm.LDA(n_topics=np.int64(2), alpha=np.float32(0.5), eta=1).fit(COUNTS, epochs=1)
    model.save(tmp_path / "model.safetensors")  # as JSON can carry them
    assert securetm.LDA.load(tmp_path / "model.safetensors") == model == securetm.LDA(n_topics=2, alpha=0.5, eta=1.0)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite):
        securetm.LDA(n_topics=2).fit(COUNTS, epochs=1).save(tmp_path / "absent" / "model.safetensors")
