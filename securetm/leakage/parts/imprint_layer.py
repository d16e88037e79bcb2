"""Weights of ProdLDA's encoder under which every number of the first layer answers to few documents only, and the way back.

The trap is Fowl et al.'s (2022): all columns measure one direction, each with a threshold of its own, so that what two
neighbours differ by is about the documents between their thresholds. It takes arrays, not messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from securetm.contracts import Array
from securetm.models.neural.prodlda_losses import Prior, Shape

_SHARP = 60.0  # how many times steeper than its bin is wide a threshold is: few documents stand on one
_LOUD = 1e4  # weights after the first layer: their own gradients shrink by it, and a clip cuts the first layer's less
_FLAT = 1e11  # size of what layer normalisation takes the size from: another gradient that would fill a clip
_PUSH = 3.0  # how far the first layer moves what is normalised, in parts of it
_STEADY = 3.0  # how much more the second layer always says than documents can change
_CROWD = 1.5  # documents for each bin: about as many bins as possible then hold one or two
_NEAR = 0.1  # how far outside of a bin its documents may lie, in parts of it
_BEYOND = 1e3  # where no document lies


@dataclass(frozen=True)
class ImprintLayer:
    """One direction in the words, and thresholds along it; `signs` is how each column speaks to what follows.

    Two neighbours, as steep as each other, take back what they say beyond both, and the next two the other way round: so
    whatever thresholds a document passes, the rest of the network hears about the same.
    """

    direction: Array  # vocabulary
    edges: Array  # hidden, rising
    slopes: Array  # hidden
    signs: Array  # hidden


def imprint_for(shape: Shape, documents: int, seed: int) -> ImprintLayer:
    """A trap for sums of about so many documents: its thresholds hold as many of them as it has columns for, and no more.

    A document's input has length one, so along normal numbers it lies as one normal number does, whatever its words are.
    """
    direction, pairs = np.random.default_rng(seed).standard_normal(shape.vocabulary), shape.hidden // 2
    share = min(1.0, _CROWD * shape.hidden / documents)
    edges = norm.ppf(0.5 + share * ((np.arange(2 * pairs) + 0.5) / (2 * pairs) - 0.5)) if pairs else np.zeros(0)
    slopes = np.repeat(_SHARP / np.diff(edges)[::2], 2)
    signs = np.array([1.0, -1.0, -1.0, 1.0])[np.arange(shape.hidden) % 4]
    alone = shape.hidden % 2  # a column that has no other to take back what it says
    return ImprintLayer(direction, np.append(edges, [_BEYOND] * alone), np.append(slopes, [1.0] * alone), signs)


def weights_of(trap: ImprintLayer, shape: Shape, prior: Prior, dtype: str) -> Array:
    """The flat weights that lay this trap: finite, and of the shape that any party expects."""
    flat = np.zeros(shape.size)
    parts = shape.views(flat)
    parts["words"][...] = trap.direction[:, None] * trap.slopes
    parts["words_bias"][...] = -trap.slopes * trap.edges
    parts["inner"][...] = trap.signs[:, None] * _LOUD
    level = _STEADY * _LOUD * _SHARP
    parts["inner_bias"][...] = level
    means, uneven, push = _head(shape.topics, prior)
    parts["head_bias"][...] = np.concatenate([means, uneven - _PUSH * push]) * _FLAT
    parts["head"][:, shape.topics :] = push * _PUSH * _FLAT / (shape.hidden * level)
    parts["topics"][...] = np.random.default_rng(0).standard_normal(parts["topics"].shape) * 1e3
    return flat.astype(dtype)


def _head(topics: int, prior: Prior) -> tuple[Array, Array, Array]:
    """What the encoder says of every document, and the way in which the loss resists it most: uneven variances.

    Their gradient is the divergence's from the prior, about the same for all documents and never near zero.
    """
    uneven = np.zeros(topics)
    uneven[:2] = 2.0, 1.0
    uneven = (uneven - uneven.mean()) / uneven.std()
    pull = 0.5 * (np.exp(uneven) / prior.variance - 1.0)
    push = pull - pull.mean() - uneven * (pull * uneven).mean()  # what layer normalisation lets through
    means = np.where(np.arange(topics) % 2, 1.0, -1.0)
    return means, uneven, push / np.linalg.norm(push)


def between(gradient: Array, trap: ImprintLayer) -> Array:
    """Of each column of a gradient, what lies between its threshold and the next one's; above the last, all that is left."""
    alike = gradient.astype(np.float64) * trap.signs
    return np.asarray(alike - np.concatenate([alike[..., 1:], np.zeros_like(alike[..., :1])], axis=-1))


def in_bin(trap: ImprintLayer, place: int, counts: Array) -> bool:
    """Whether a document lies between that column's threshold and the next one, or not far from it."""
    inputs = np.log1p(counts)
    at = float(inputs @ trap.direction) / float(np.linalg.norm(inputs))
    low, high = trap.edges[place], np.append(trap.edges, np.inf)[place + 1]
    near = _NEAR / trap.slopes[place] * _SHARP
    return bool(low - near < at < high + near)
