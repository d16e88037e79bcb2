"""Gradients of neural models: their layers, the documents that a closed form finds in them, and differences of sums.

For each word, the first layer's gradient is a sum over documents of the input times the gradient at that layer. The bias'
gradient is the sum of the latter alone. Dividing one by the other gives the input (Geiping et al. 2020, proposition 3.1, for
one document; the cone of several documents is our own).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self, cast

import numpy as np
from scipy.optimize import nnls

from securetm.auditing.attack import RoundReconstruction
from securetm.auditing.views import ReadVector
from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.neural_model import NeuralTopicModel

# ---- extreme rays of a cone: rows that are non-negative combinations of few rays, and the rays ----------------------

_SEVERAL = 3e-5  # the least distance of two different directions
_LEAST = 1e-7  # the precision of a product of directions in 64 bits


def extreme_rays(rows: Array, count: int) -> Array:
    """At most `count` extreme rays of the cone that holds all rows, each of length one.

    A ray is found if some row is on it (separable non-negative factorisation; Arora et al. 2012). Rows are first projected
    onto one plane, where the rays are the farthest points (successive projections; Gillis and Vavasis 2014).
    """
    towards = directions(rows)
    count = min(count, *towards.shape)
    if count < 1:
        return np.zeros((0, rows.shape[1]))
    narrow = towards @ np.linalg.svd(towards, full_matrices=False)[2][:count].T
    left, found = narrow / _heights(narrow)[:, None], list[int]()
    for _ in range(count):  # the corners of the points' convex hull, the farthest first; each is projected out of all points
        squares = (left**2).sum(axis=1)
        farthest = int(squares.argmax())
        if squares[farthest] <= _SEVERAL**2:
            break
        found.append(farthest)
        towards_it = left[farthest] / np.sqrt(squares[farthest])
        left -= np.outer(left @ towards_it, towards_it)
    return np.asarray(towards[found])


def directions(rows: Array) -> Array:
    """The rows at length one. A row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    towards: Array = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return towards


def _heights(rows: Array) -> Array:
    """Each row's length along the point of the rows' convex hull that is nearest to the origin."""
    weights, _ = nnls(np.vstack([rows.T, np.ones(len(rows))]), np.append(np.zeros(rows.shape[1]), 1.0), maxiter=50 * len(rows))
    heights: Array = rows @ (rows.T @ weights)
    # Rows that are in no cone, such as noise, have no such point. Then each row stays.
    return heights if heights.min() > 0 else np.ones(len(rows))


def parallel(rows: Array, apart: Array) -> list[Array]:
    """Groups of two or more parallel rows. `apart` is how far noise may turn each row."""
    towards, free, groups = directions(rows), np.ones(len(rows), dtype=bool), []
    free &= np.isfinite(apart) & (rows != 0).any(axis=1)
    for first in np.argsort(apart, kind="stable"):  # the most precise first, so groups form around them
        if not free[first]:
            continue
        gaps = np.sqrt(np.maximum(2.0 - 2.0 * (towards @ towards[first]), 0.0))
        group = np.flatnonzero(free & (gaps <= np.maximum(apart + apart[first], _LEAST)))
        free[group] = False
        if len(group) > 1:
            groups.append(group)
    return groups


# ---- whole counts from a network's input: the log1p of each count, normalised to length one -------------------------
# The inverse is exact if one count fixes the scale. A document whose counts are all equal looks the same for any count.

_LEAST_COUNTS = range(1, 9)  # how often the rarest word of a document may occur
_WHOLE = 0.1  # the largest distance of a count from a whole number
_PRESENT = 0.003  # of a document's length: the input of a word that occurs once among 100,000 others
_MOST = 10_000  # no word occurs so often in a document


def readings(inputs: Array) -> list[Array]:
    """Every list of whole counts with these inputs, the smallest first; none if no document has them."""
    length = float(np.linalg.norm(inputs))
    if not np.isfinite(length) or length == 0.0:
        return []
    there = inputs / length > _PRESENT
    if not there.any():
        return []
    known = np.where(there, inputs / length, 0.0)
    least = float(known[there].min())
    tried = [np.expm1(np.minimum(known * (np.log1p(count) / least), float(np.log1p(_MOST)))) for count in _LEAST_COUNTS]
    misses = [float(np.abs(counts - np.rint(counts)).max()) for counts in tried]
    fitting = [counts for counts, miss in zip(tried, misses, strict=True) if miss < _WHOLE]
    nearest = fitting or [tried[int(np.argmin(misses))]]
    return [np.rint(counts).astype(np.int64) for counts in nearest if counts.max() < _MOST]


def best_readings(possible: Sequence[Sequence[Array]], estimates: Array) -> list[Array]:
    """One list of counts for each document: the one that fits the document's own words best.

    `estimates` holds how often each word occurs in all documents together, from the decoder's gradient
    (`closed_form.estimated_counts`). Only words that no other document has are compared with it.
    """
    firsts = [readings_of[0] for readings_of in possible]
    documents_with = np.sum([first > 0 for first in firsts], axis=0) if firsts else np.zeros(len(estimates))
    chosen = []
    for several in possible:
        own = (several[0] > 0) & (documents_with == 1)
        misses = [float(np.abs(counts[own] - estimates[own]).sum()) for counts in several]
        chosen.append(several[int(np.argmin(misses))])
    return chosen


# ---- the closed form ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientLayers:
    """The layers of a gradient that words pass through. `step` is the grid of its numbers, 0 if they are not rounded."""

    words: Array  # vocabulary x hidden
    words_bias: Array  # hidden
    topics: Array  # topics x vocabulary
    background: Array  # vocabulary
    step: float = 0.0

    @classmethod
    def from_blocks(cls, layers: Mapping[str, Array], step: float) -> Self:
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
    fits = list[tuple[float, float, Array]]()  # the misfit at words that do not occur, the length, and the expectation
    for size in np.linspace(0.5, 1.5, 101):
        logits = size * shares @ topics
        scores = gain * (logits - logits.mean()) / np.sqrt(logits.var() + 1e-5) + background
        scores = np.exp(scores - scores.max())
        expected = scores / scores.sum()
        length = float(np.median(observed / expected))
        fits.append((float(np.quantile(np.abs(length * expected - observed), 0.5)), length, expected))
    _, length, expected = min(fits, key=lambda fit: fit[0])
    counts = np.rint(length * expected - observed)
    return np.maximum(counts, 0.0).astype(np.int64) if counts.max(initial=0) >= 1 else None


# ---- differences of sums: a total without known answers, or two totals that differ in one party ---------------------

_ROUNDINGS = 16.0  # at most in a floating-point sum of a few vectors, each of half a last place


def without(total: ReadVector, known: Sequence[ReadVector]) -> ReadVector:
    """The total minus these answers of the same round: exact on a grid, else up to rounding."""
    grid = total.round.terms.grid
    left = {name: _left(block, [one.blocks[name] for one in known], grid) for name, block in total.blocks.items()}
    return replace(total, blocks=left)


def _left(block: Array, known: Sequence[Array], grid: float) -> Array:
    """The difference. A rest that rounding alone explains is set to 0, so a word that no party used has a row of zeros."""
    if grid:
        whole: Array = np.rint(block / grid) - sum((np.rint(one / grid) for one in known), np.zeros(block.shape))
        return np.asarray(whole * grid)
    left = block.astype(np.float64) - sum((one.astype(np.float64) for one in known), np.zeros(block.shape))
    size = np.abs(block) + sum((np.abs(one) for one in known), np.zeros(block.shape))
    exact = np.finfo(block.dtype).eps if block.dtype.kind == "f" else 0.0
    return np.asarray(np.where(np.abs(left) > _ROUNDINGS * exact * size, left, 0.0))


def apart(whole: ReadVector, rest: ReadVector, parties: int, party: str) -> ReadVector:
    """The difference of two totals of the same question. `whole` has so many parties, `rest` one less.

    Each sum may have a grid of its own. Each of its vectors was rounded by half a step at most.
    """
    unsure = (parties * whole.round.terms.grid + (parties - 1) * rest.round.terms.grid) / 2.0
    exact = {name: _left(block, [rest.blocks[name]], 0.0) for name, block in whole.blocks.items()}
    left = {name: np.where(np.abs(values) > unsure, values, 0.0) for name, values in exact.items()}
    rough = replace(whole.round.terms, grid=2.0 * unsure)
    return ReadVector(replace(whole.round, terms=rough), party, left)


# ---- gradients in what was read -------------------------------------------------------------------------------------

GRADIENT, DOCUMENTS = "gradient", "documents"


def gradients(vectors: Iterable[ReadVector]) -> list[ReadVector]:
    return [one for one in vectors if GRADIENT in one.blocks]


def enough_gradients(vectors: Iterable[ReadVector], documents: int) -> Iterator[ReadVector]:
    """The first gradients among these vectors, until they hold so many documents."""
    held = 0
    for one in gradients(vectors):
        if held < documents:
            yield one
            held += document_count(one, documents)


def layers_of(vector: ReadVector, model: object) -> GradientLayers:
    return GradientLayers.from_blocks(shape_of(vector, model).views(vector.blocks[GRADIENT]), vector.round.terms.grid)


def weights_of(vector: ReadVector, model: object) -> dict[str, Array]:
    """The weights that the question showed, layer by layer."""
    return shape_of(vector, model).views(np.asarray(vector.round.state["weights"], dtype=np.float64))


def shape_of(vector: ReadVector, model: object) -> NetworkShape:
    return network_shape(vector.blocks[GRADIENT], model)


def network_shape(flat: Array, model: object) -> NetworkShape:
    """The shapes of the layers in a flat vector of weights or gradients."""
    network = cast("NeuralTopicModel", model)
    return NetworkShape.from_weights(flat, network.hidden, network.n_topics, network.embedding_size, network.reads_words)


def document_count(vector: ReadVector, most: int) -> int:
    """How many documents are in a gradient: the answer's own number, or the public batch size if that is impossible."""
    stated = float(vector.blocks[DOCUMENTS][0])
    return round(stated) if 1 <= stated <= most else min(vector.round.terms.batch or most, most)


def invert_gradient(vector: ReadVector, model: object, summands: int = 0) -> RoundReconstruction:
    """The documents and words in one vector. In a sum of `summands` vectors, words of one document alone are linked too."""
    layers = layers_of(vector, model)
    documents = documents_in(layers, document_count(vector, layers.words.shape[1]))
    groups = linked_words(layers, summands) if summands else []
    return RoundReconstruction(vector.round.serial, vector.party, tuple(documents), words_in(layers), tuple(groups))
