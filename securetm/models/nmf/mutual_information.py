"""The SMILE bound on the mutual information of documents and their topic weights, and its gradients, on one mini-batch.

A critic scores every document of the batch beside the topic weights of every document of it (Song and Ermon 2020). It couples
the documents of a batch, so no row of a single document comes from here. Products run in a fixed order on one thread.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.gibbs.lda_kernels import Bags
from securetm.models.neural.fixed_order import add_product, add_product_transposed

FIRST, SECOND = 32, 256  # units of the critic's two hidden layers


def product(left: Array, right: Array) -> Array:
    """left @ right."""
    out = np.zeros((len(left), right.shape[1]), left.dtype)
    add_product(left, right, out)
    return out


def product_transposed(left: Array, right: Array) -> Array:
    """left @ right.T."""
    out = np.zeros((len(left), len(right)), left.dtype)
    add_product_transposed(left, right, out)
    return out


@dataclass(frozen=True)
class CriticShape:
    """The places of a critic's layers in a flat vector."""

    words: int
    topics: int

    @property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of the layers, in the order of the flat vector."""
        return (
            ("words", (self.words, FIRST)), ("topics", (self.topics, FIRST)), ("first_bias", (FIRST,)),
            ("inner", (FIRST, SECOND)), ("second_bias", (SECOND,)), ("out", (SECOND, 1)), ("out_bias", (1,)),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Weights in all."""
        return sum(math.prod(shape) for _, shape in self.parts)

    def views(self, flat: Array) -> dict[str, Array]:
        """Each layer as a view into the flat vector."""
        ends = itertools.accumulate((math.prod(shape) for _, shape in self.parts), initial=0)
        cuts = itertools.pairwise(ends)
        return {name: flat[first:end].reshape(shape) for (name, shape), (first, end) in zip(self.parts, cuts, strict=True)}

    def fresh(self, rng: np.random.Generator) -> Array:
        """Weights to begin with, by Glorot's rule; biases are zero."""
        flat = np.zeros(self.size, np.float32)
        for name, layer in self.views(flat).items():
            if not name.endswith("bias"):
                bound = math.sqrt(6.0 / sum(layer.shape))
                layer[...] = rng.uniform(-bound, bound, layer.shape)
        return flat


@dataclass(frozen=True)
class WordRows:
    """Some documents as lists of words and their weights."""

    bags: Bags
    weights: Array  # float32, one for each word of each document
    rows: Array  # which documents

    def times(self, table: Array) -> Array:
        """These documents' rows of words, times a table with a row for each word."""
        return _gathered(self.bags, self.weights, self.rows, table)

    def transposed_times(self, right: Array, words: int) -> Array:
        """The transpose of these documents' rows of words, times a table with a row for each document."""
        out = np.zeros((words, right.shape[1]), right.dtype)
        _scatter(self.bags, self.weights, self.rows, right, out)
        return out

    def subtract_from(self, table: Array) -> None:
        """Subtracts these documents' rows of words from a table of documents x words."""
        _subtract(self.bags, self.weights, self.rows, table)


@dataclass(frozen=True)
class Smile:
    """The bound on a batch, and its gradients in the critic's weights and in the topic weights."""

    value: float
    critic: Array
    topics: Array


def smile(shape: CriticShape, flat: Array, documents: WordRows, topics: Array, tau: float) -> Smile:
    """The bound on a batch of two documents or more; `topics` are their topic weights."""
    layer, count = shape.views(flat), len(topics)
    of_words = documents.times(layer["words"])
    of_topics = product(topics, layer["topics"]) + layer["first_bias"]
    first = np.maximum((of_words[:, None, :] + of_topics[None, :, :]).reshape(count * count, FIRST), 0)
    second = np.maximum(product(first, layer["inner"]) + layer["second_bias"], 0)
    scores = (product(second, layer["out"]) + layer["out_bias"]).reshape(count, count).astype(np.float64)
    value, slopes = bound(scores, tau)
    out = slopes.astype(np.float32).reshape(-1, 1)
    back = np.where(second > 0, out * layer["out"].T, np.float32(0))
    inner = np.where(first > 0, product_transposed(back, layer["inner"]), np.float32(0)).reshape(count, count, FIRST)
    by_document, by_topics = inner.sum(axis=1), inner.sum(axis=0)
    gradient = np.empty_like(flat)
    part = shape.views(gradient)
    part["words"][...] = documents.transposed_times(by_document, shape.words)
    part["topics"][...] = product(np.ascontiguousarray(topics.T), by_topics)
    part["first_bias"][...] = by_topics.sum(axis=0)
    part["inner"][...] = product(np.ascontiguousarray(first.T), back)
    part["second_bias"][...] = back.sum(axis=0)
    part["out"][...] = product(np.ascontiguousarray(second.T), out)
    part["out_bias"][...] = out.sum(axis=0)
    return Smile(value, gradient, product_transposed(by_topics, layer["topics"]))


def bound(scores: Array, tau: float) -> tuple[float, Array]:
    """The bound and its slope in each score: row i is document i, column j the topic weights of document j.

    A document's score beside its own topic weights counts up to tau, too. The authors leave it without a limit: then the critic
    grows until its numbers overflow, and the bound with it.
    """
    count, own = len(scores), np.eye(len(scores), dtype=bool)
    each = np.where(own, 0.0, np.exp(np.clip(scores, -tau, tau)))
    slopes = np.where(np.abs(scores) < tau, -each / each.sum(), 0.0)
    slopes[own] = (scores[own] < tau) / count
    value = np.minimum(scores[own], tau).mean() - math.log(each.sum() / (count * (count - 1)))
    return float(value), slopes


@njit(cache=True)
def _gathered(bags: Any, weights: Array, rows: Array, table: Array) -> Array:
    ends, words, _ = bags
    out = np.zeros((len(rows), table.shape[1]), table.dtype)
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            for z in range(table.shape[1]):
                out[row, z] += weights[i] * table[words[i], z]
    return out


@njit(cache=True)
def _scatter(bags: Any, weights: Array, rows: Array, right: Array, out: Array) -> None:
    ends, words, _ = bags
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            for z in range(right.shape[1]):
                out[words[i], z] += weights[i] * right[row, z]


@njit(cache=True)
def _subtract(bags: Any, weights: Array, rows: Array, table: Array) -> None:
    ends, words, _ = bags
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            table[row, words[i]] -= weights[i]
