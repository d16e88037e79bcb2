"""Imprint weights for ProdLDA's encoder: each column of the first layer has documents of its own in its gradient.

The construction is Fowl et al.'s (2022). All columns measure one direction, each with its own threshold. The difference of two
neighbours then depends only on the documents between their thresholds. It takes arrays, not messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from securetm.contracts import Array
from securetm.models.neural.network_shape import NetworkShape, Prior

_SHARP = 60.0  # a threshold's steepness, in parts of its bin: few documents lie on a threshold
_LOUD = 1e4  # weights after the first layer: they make the other gradients small, so a clip cuts the first layer's less
_FLAT = 1e11  # input size of the layer normalisation, which makes another gradient small that would fill the clip
_PUSH = 3.0  # how far the first layer moves the input of the normalisation, as a share of it
_STEADY = 3.0  # the second layer's bias, in parts of the most that documents can change
_CROWD = 1.5  # documents for each bin, so most bins hold one or two
_NEAR = 0.1  # how far outside a bin its documents may lie, as a share of the bin
_BEYOND = 1e3  # a threshold that no document reaches


@dataclass(frozen=True)
class ImprintLayer:
    """One direction in the words, and thresholds along it. `signs` are the weights of the columns in the next layer.

    Two neighbouring columns of the same steepness cancel beyond both thresholds, and the next pair cancels with opposite signs.
    So the rest of the network gets about the same input whichever thresholds a document passes.
    """

    direction: Array  # vocabulary
    edges: Array  # hidden, rising
    slopes: Array  # hidden
    signs: Array  # hidden


def imprint_for(shape: NetworkShape, documents: int, seed: int) -> ImprintLayer:
    """The imprint for sums of about so many documents. Its thresholds cover as many of them as there are columns.

    A document's input has length one, so its place along a direction of normal numbers is a normal number.
    """
    direction, pairs = np.random.default_rng(seed).standard_normal(shape.vocabulary), shape.hidden // 2
    share = min(1.0, _CROWD * shape.hidden / documents)
    edges = norm.ppf(0.5 + share * ((np.arange(2 * pairs) + 0.5) / (2 * pairs) - 0.5)) if pairs else np.zeros(0)
    slopes = np.repeat(_SHARP / np.diff(edges)[::2], 2)
    signs = np.array([1.0, -1.0, -1.0, 1.0])[np.arange(shape.hidden) % 4]
    alone = shape.hidden % 2  # a column without a neighbour that cancels it
    return ImprintLayer(direction, np.append(edges, [_BEYOND] * alone), np.append(slopes, [1.0] * alone), signs)


def weights_of(imprint: ImprintLayer, shape: NetworkShape, prior: Prior, dtype: str) -> Array:
    """The flat weights of this imprint: finite, and of the shape that every party expects."""
    flat = np.zeros(shape.size)
    parts = shape.views(flat)
    parts["words"][...] = imprint.direction[:, None] * imprint.slopes
    parts["words_bias"][...] = -imprint.slopes * imprint.edges
    parts["inner"][...] = imprint.signs[:, None] * _LOUD
    level = _STEADY * _LOUD * _SHARP
    parts["inner_bias"][...] = level
    means, uneven, push = _head(shape.topics, prior)
    parts["head_bias"][...] = np.concatenate([means, uneven - _PUSH * push]) * _FLAT
    parts["head"][:, shape.topics :] = push * _PUSH * _FLAT / (shape.hidden * level)
    parts["topics"][...] = np.random.default_rng(0).standard_normal(parts["topics"].shape) * 1e3
    return flat.astype(dtype)


def _head(topics: int, prior: Prior) -> tuple[Array, Array, Array]:
    """The encoder's constant output, and the direction in which the loss has the largest gradient: uneven variances.

    This gradient comes from the divergence from the prior. It is about the same for all documents, and never near zero.
    """
    uneven = np.zeros(topics)
    uneven[:2] = 2.0, 1.0
    uneven = (uneven - uneven.mean()) / uneven.std()
    pull = 0.5 * (np.exp(uneven) / prior.variance - 1.0)
    push = pull - pull.mean() - uneven * (pull * uneven).mean()  # what layer normalisation lets through
    means = np.where(np.arange(topics) % 2, 1.0, -1.0)
    return means, uneven, push / np.linalg.norm(push)


def between(gradient: Array, imprint: ImprintLayer) -> Array:
    """Of each column of a gradient, the part between its threshold and the next one; of the last, all above."""
    alike = gradient.astype(np.float64) * imprint.signs
    return np.asarray(alike - np.concatenate([alike[..., 1:], np.zeros_like(alike[..., :1])], axis=-1))


def in_bin(imprint: ImprintLayer, place: int, counts: Array) -> bool:
    """Whether a document lies between that column's threshold and the next one, or close to these."""
    inputs = np.log1p(counts)
    at = float(inputs @ imprint.direction) / float(np.linalg.norm(inputs))
    low, high = imprint.edges[place], np.append(imprint.edges, np.inf)[place + 1]
    near = _NEAR / imprint.slopes[place] * _SHARP
    return bool(low - near < at < high + near)
