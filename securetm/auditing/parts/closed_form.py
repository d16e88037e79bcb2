"""Documents from a neural model's gradient in closed form, without optimisation, and without guessing the documents' noise.

For each word, the first layer's gradient is a sum over documents of the input times the gradient at that layer. The bias'
gradient is the sum of the latter alone. Dividing one by the other gives the input (Geiping et al. 2020, proposition 3.1, for
one document; the cone of several documents is our own). It takes arrays, not messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from securetm.auditing.parts.cones import extreme_rays, parallel
from securetm.auditing.parts.word_bags import best_readings, readings
from securetm.contracts import Array


@dataclass(frozen=True)
class GradientLayers:
    """The layers of a gradient that words pass through. `step` is the grid of its numbers, 0 if they are not rounded."""

    words: Array  # vocabulary x hidden
    words_bias: Array  # hidden
    topics: Array  # topics x vocabulary
    background: Array  # vocabulary
    step: float = 0.0

    @classmethod
    def of(cls, layers: Mapping[str, Array], step: float) -> Self:
        """The layers by the model's own names. An encoder that reads embeddings alone has no words."""
        words = layers.get("words", np.zeros((len(layers["background"]), 0)))
        return cls(words, layers["words_bias"], layers["topics"], layers["background"], step)


def words_in(layers: GradientLayers) -> Array:
    """The places of the words that occur: their rows of the first layer's gradient are not zero."""
    return np.flatnonzero((layers.words != 0).any(axis=1))


def estimated_counts(layers: GradientLayers) -> Array:
    """About how often each word occurs: the background's gradient is the expected count of a word minus its count."""
    return np.maximum(-layers.background, 0.0)


def documents_in(layers: GradientLayers, documents: int) -> list[Array]:
    """The counts of at most `documents` documents, over the whole vocabulary.

    The rows of words that only one document has are on one ray. Scaled so that they add up to the bias' gradient, the rays are
    the documents' own gradients. Solving for them gives every document's inputs, also of shared words.
    """
    occur = words_in(layers)
    rows = layers.words[occur].astype(np.float64)
    rays = extreme_rays(rows, documents)
    if not len(rays):
        return []
    scale = np.linalg.lstsq(rays.T, layers.words_bias.astype(np.float64), rcond=None)[0]
    own = rays * np.where(scale > 0, scale, 1.0)[:, None]
    inputs = np.linalg.lstsq(own.T, rows.T, rcond=None)[0]
    return whole_documents(inputs, layers, occur)


def whole_documents(inputs: Iterable[Array], layers: GradientLayers, occur: Array) -> list[Array]:
    """The counts, over the whole vocabulary, of documents with these inputs at the words that occur."""
    possible = [several for several in map(readings, inputs) if several]
    found = [np.zeros(len(layers.words), dtype=np.int64) for _ in possible]
    for whole, counts in zip(found, best_readings(possible, estimated_counts(layers)[occur]), strict=True):
        whole[occur] = counts
    return found


def linked_words(layers: GradientLayers, summands: int) -> list[Array]:
    """Groups of words that only one document has. Their rows are parallel, whatever else is in the sum."""
    occur = words_in(layers)
    rows = layers.words[occur].astype(np.float64)
    rounding = 3e-7 * np.linalg.norm(rows, axis=1) + layers.step * np.sqrt(summands * rows.shape[1] / 12.0)
    apart = 3.0 * rounding / np.linalg.norm(rows, axis=1)
    return [occur[group] for group in parallel(rows, np.where(apart < 0.1, apart, np.inf))]


def document_behind(layers: GradientLayers, topics: Array, background: Array, gain: float) -> Array | None:
    """The counts of a single document, from the decoder's gradient and weights alone.

    The gradient of the topics is one column (the document's topics) times one row, so it shows the document's topics up to a
    factor. These and the weights give the model's expectation of each word. The background's gradient is the expectation times
    the document's length, minus the counts. Length and factor follow from the many words that do not occur.
    """
    left, strengths, _ = np.linalg.svd(layers.topics.astype(np.float64), full_matrices=False)
    if not strengths[0] > 0:
        return None
    shares = left[:, 0] * np.sign(left[:, 0].sum())
    shares = np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum()
    observed = layers.background.astype(np.float64)
    fits = [_fitted(_expected(size * shares, topics, background, gain), observed) for size in np.linspace(0.5, 1.5, 101)]
    _, length, expected = min(fits, key=lambda fit: fit[0])
    counts = np.rint(length * expected - observed)
    return np.maximum(counts, 0.0).astype(np.int64) if counts.max(initial=0) >= 1 else None


def _expected(shares: Array, topics: Array, background: Array, gain: float) -> Array:
    """The decoder's own distribution over words."""
    logits = shares @ topics
    scores = gain * (logits - logits.mean()) / np.sqrt(logits.var() + 1e-5) + background
    scores = np.exp(scores - scores.max())
    expected: Array = scores / scores.sum()
    return expected


def _fitted(expected: Array, observed: Array) -> tuple[float, float, Array]:
    """The misfit of this expectation at words that do not occur, the best length, and the expectation."""
    length = float(np.median(observed / expected))
    misses = np.abs(length * expected - observed)
    return float(np.quantile(misses, 0.5)), length, expected
