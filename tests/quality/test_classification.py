"""Classification by topic weights: what tells labels apart does, and what does not is chance."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.quality.measures import TooFewLabels, classified


def weights_of(labels: np.ndarray, told: float) -> np.ndarray:
    own = np.eye(4)[labels]
    return told * own + (1 - told) * np.random.default_rng(0).dirichlet(np.ones(4), len(labels))


def test_weights_that_tell_the_label_classify_every_document() -> None:
    labels = np.arange(200) % 3
    found = classified(weights_of(labels, 0.9), labels)
    assert (found.accuracy, found.macro_f1) == (1.0, 1.0)


def test_weights_that_tell_nothing_are_chance() -> None:
    labels = np.arange(400) % 4
    assert classified(weights_of(labels, 0.0), labels).accuracy < 0.4


def test_a_rare_label_that_is_missed_lowers_macro_f1_and_not_accuracy() -> None:
    labels = np.array([0] * 190 + [1] * 5 + [2] * 5)
    found = classified(weights_of(np.where(labels == 2, 1, labels), 0.9), labels)
    assert found.accuracy > 0.95
    assert found.macro_f1 < 0.9


def test_documents_without_a_label_take_no_part() -> None:
    labels = np.array(["a", "b", ""] * 20)
    found = classified(weights_of(np.arange(60) % 3, 0.9), labels)
    assert len(found.labels) == 40
    assert found.accuracy == 1.0


@pytest.mark.parametrize("labels", [[], ["a"] * 10, ["a"] * 10 + ["b"], [""] * 10])
def test_one_label_is_refused(labels: list[str]) -> None:
    with pytest.raises(TooFewLabels, match="needs two labels"):
        classified(np.full((len(labels), 3), 1 / 3), labels)
