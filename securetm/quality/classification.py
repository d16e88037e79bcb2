"""Classification of documents by their topic weights alone, as FedNMF judges its models. It infers no weights itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.errors import SecuretmError

FOLDS = 5  # each document is tried once, by a classifier of the other 80 % (FedNMF: one split of 80 and 20 %)
_LEAST = 1e-4  # is added to each weight before its logarithm is taken


class TooFewLabels(SecuretmError):
    """classification needs two labels with two documents each, and finds {found} of them in {documents:document|documents}"""

    documents: int
    found: int
    hint = "name the column of the label: --label COLUMN (in Python label=)"


@dataclass(frozen=True, eq=False)
class Classified:
    """What a linear classifier says of each document that it was not trained on."""

    labels: Array
    said: Array

    @property
    def right(self) -> Array:
        """Whether each document got its label."""
        return np.asarray(self.labels == self.said)

    @property
    def accuracy(self) -> float:
        """The share of documents that get their label."""
        return float(self.right.mean())

    @property
    def macro_f1(self) -> float:
        """The mean over labels of the harmonic mean of precision and recall: rare labels count as much as frequent ones."""
        from sklearn.metrics import f1_score  # takes long to import

        return float(f1_score(self.labels, self.said, average="macro", zero_division=0))


def classified(weights: Array, labels: Any, *, seed: int = 0) -> Classified:
    """Tries every document once: a linear SVM learns from the topic weights of four fifths and says the labels of the rest.

    `weights` are documents x topics. A document without a label ("") takes no part. The seed decides the five parts, in each of
    which a label has about the same share.
    """
    labels = np.asarray(labels, dtype=np.str_)
    there = np.flatnonzero(labels != "")
    weights, labels = np.asarray(weights)[there], labels[there]
    enough = int(np.count_nonzero(np.unique(labels, return_counts=True)[1] > 1))
    if enough < 2:
        raise TooFewLabels(len(labels), enough)
    fold = _folds(labels, np.random.default_rng(seed))
    said = labels.copy()
    for number in range(FOLDS):
        tried = fold == number
        if tried.any():
            said[tried] = said_by_svm(weights[~tried], labels[~tried], weights[tried])
    return Classified(labels, said)


def said_by_svm(known: Array, labels: Array, tried: Array) -> Array:
    """The labels that a linear SVM gives documents, from the topic weights of documents with known labels.

    It reads logarithms of weights, each topic's scaled to unit variance: so a rare topic counts as much as a frequent one.
    """
    from sklearn.svm import LinearSVC  # takes long to import

    logs = np.log(known + _LEAST)
    middle, spread = logs.mean(axis=0), logs.std(axis=0) + 1e-9
    svm = LinearSVC(C=0.1, dual=False).fit((logs - middle) / spread, labels)
    said: Array = svm.predict((np.log(tried + _LEAST) - middle) / spread)
    return said


def _folds(labels: Array, rng: np.random.Generator) -> Array:
    """The part in which each document is tried: the documents of each label are dealt out in turn, in random order."""
    order = np.lexsort((rng.random(len(labels)), labels))
    fold = np.empty(len(labels), dtype=np.int64)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold
