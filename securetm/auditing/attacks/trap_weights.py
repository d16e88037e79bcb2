"""Documents from answers about weights that a malicious coordinator made for that purpose, one party's or the sum of all.

Every message follows the protocol: shapes are right and values finite. The attack breaks no mask and no seal. It reads a sealed
answer as the numbers that it shows, and a secure sum after it was opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import cast

import numpy as np
from scipy.stats import norm

from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.gradients import GRADIENT, gradients, readings, shape_of
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.auditing.views import BY_PARTIES, REQUEST, TOTAL, VOCABULARY, AdversaryView, ReadVector, party_vectors, totals
from securetm.contracts import Array, State, TopicModel
from securetm.data_classes import dataclass, replace
from securetm.models.neural.network import NetworkShape, Prior
from securetm.models.neural.prodlda import ProdLDA

# ---- imprint weights: each column of the first layer has documents of its own in its gradient -----------------------
# The construction is Fowl et al.'s (2022). All columns measure one direction, each with its own threshold. The difference of
# two neighbours then depends only on the documents between their thresholds. It takes arrays, not messages.

_SHARP = 60.0  # a threshold's steepness, in parts of its bin: few documents lie on a threshold
_LOUD = 1e4  # weights after the first layer: they make the other gradients small, so a clip cuts the first layer's less
_FLAT = 1e11  # input size of the layer normalisation, which makes another gradient small that would fill the clip
_PUSH = 3.0  # how far the first layer moves the input of the normalisation, as a share of it
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
    share = min(1.0, 1.5 * shape.hidden / documents)  # documents for each bin, so most bins hold one or two
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
    level = 3.0 * _LOUD * _SHARP  # the second layer's bias, in parts of the most that documents can change
    parts["inner_bias"][...] = level
    # the encoder's constant output, and the direction in which the loss has the largest gradient: uneven variances; this
    # gradient comes from the divergence from the prior, is about the same for all documents, and never near zero
    uneven = np.zeros(shape.topics)
    uneven[:2] = 2.0, 1.0
    uneven = (uneven - uneven.mean()) / uneven.std()
    pull = 0.5 * (np.exp(uneven) / prior.variance - 1.0)
    push = pull - pull.mean() - uneven * (pull * uneven).mean()  # what layer normalisation lets through
    push = push / np.linalg.norm(push)
    means = np.where(np.arange(shape.topics) % 2, 1.0, -1.0)
    parts["head_bias"][...] = np.concatenate([means, uneven - _PUSH * push]) * _FLAT
    parts["head"][:, shape.topics :] = push * _PUSH * _FLAT / (shape.hidden * level)
    parts["topics"][...] = np.random.default_rng(0).standard_normal(parts["topics"].shape) * 1e3
    return flat.astype(dtype)


def between(gradient: Array, imprint: ImprintLayer) -> Array:
    """Of each column of a gradient, the part between its threshold and the next one; of the last, all above."""
    alike = gradient.astype(np.float64) * imprint.signs
    return np.asarray(alike - np.concatenate([alike[..., 1:], np.zeros_like(alike[..., :1])], axis=-1))


def in_bin(imprint: ImprintLayer, place: int, counts: Array) -> bool:
    """Whether a document lies between that column's threshold and the next one, or close to these."""
    inputs = np.log1p(counts)
    at = float(inputs @ imprint.direction) / float(np.linalg.norm(inputs))
    low, high = imprint.edges[place], np.append(imprint.edges, np.inf)[place + 1]
    near = 0.1 / imprint.slopes[place] * _SHARP  # how far outside a bin its documents may lie, as a share of the bin
    return bool(low - near < at < high + near)


# ---- the documents of one bin ---------------------------------------------------------------------------------------
# Each input is the log1p of counts at length one, so all words that occur once in a document have the same number. Two numbers
# that explain all words are two documents. This separation is our own. It knows no gradient and no imprint.

_LENGTH = 0.01  # the largest error of a length
_LEVELS = np.log1p(np.arange(13))  # counts that are tried when two documents are separated
_MOST_VALUES = 24  # different numbers that may belong to a word that occurs once


def one_document(inputs: Array, error: float) -> list[Array]:
    """The counts of a single document with these inputs, as one row, if their length is one."""
    if abs(float(np.linalg.norm(inputs)) - 1.0) > _LENGTH or inputs.min(initial=0.0) < -6 * error:
        return []
    return [counts[None, :] for counts in readings(np.where(inputs > 4 * error, inputs, 0.0))[:1]]


def two_documents(inputs: Array, error: float) -> list[Array]:
    """Every pair of documents with a weighted sum of inputs equal to these: two rows of counts each, the best pair first.

    The weights add up to one. `error` is the largest error of each number.
    """
    there = np.flatnonzero(inputs > 4 * error)
    # two documents together have at most 200 words
    if not 2 <= len(there) <= 200 or inputs.min() < -6 * error:
        return []
    numbers = inputs[there]
    order = np.sort(numbers)
    alike = np.split(order, np.flatnonzero(np.diff(order) > 2 * error) + 1)
    values = [float(group.mean()) for group in sorted(alike, key=len, reverse=True)[:_MOST_VALUES]]  # the most frequent first
    tried = (_explained(numbers, one / _LEVELS[1], two / _LEVELS[1], error) for one, two in combinations(values, 2))
    found = sorted((fit for fit in tried if fit is not None), key=lambda fit: fit[0])
    pairs = [np.zeros((2, len(inputs)), dtype=np.int64) for _ in found]
    for pair, (_, counts) in zip(pairs, found, strict=True):
        pair[:, there] = counts
    return pairs


def _explained(numbers: Array, one: float, two: float, error: float) -> tuple[float, Array] | None:
    """The misfit of two scales, and the counts; nothing if the scales do not explain all numbers, or the lengths do not fit."""
    if abs(one - two) * _LEVELS[1] <= 2 * error:  # the words of the two could not be separated
        return None
    sums = (one * _LEVELS[:, None] + two * _LEVELS[None, :]).ravel()
    misses = np.abs(numbers[:, None] - sums)
    nearest = misses.argmin(axis=1)
    worst = float(misses[np.arange(len(numbers)), nearest].max())
    counts = np.array(np.divmod(nearest, len(_LEVELS)))
    parts = np.array([one, two]) * np.linalg.norm(_LEVELS[counts], axis=1)
    if worst > 3 * error or parts.min() < 0.2 or abs(parts.sum() - 1.0) > _LENGTH:  # the share of the smaller of two documents
        return None
    return worst, counts


_CITATION = (
    "Fowl et al. 2022 (arXiv 2110.13057), the bins; Boenisch et al. 2023 (arXiv 2112.02918), trap weights; that two documents "
    "in a bin come apart by their counts is our own"
)
_EXPECTED = "documents"  # about how many documents a vector holds, as the plan says
_LEAST_ERROR = 3e-4  # of a number, as a share of a document's length: what documents in neighbouring bins leave behind
_ROUNDING = 3e-7  # of sums in 32 bits, as a share of the largest number


def imprinted_state(state: State, model: TopicModel, effort: Effort) -> State:
    """The malicious coordinator's state: other imprint weights in each round, for about so many documents in a sum."""
    network, flat = cast("ProdLDA", model), state["weights"]
    shape = NetworkShape.from_weights(flat, network.hidden, network.n_topics)
    imprint = imprint_for(shape, effort[_EXPECTED], int(state["step"][0]))
    prior = Prior.laplace(network.alpha, network.n_topics, network.prior_weight)
    return {**state, "weights": weights_of(imprint, shape, prior, network.dtype)}


def attack(
    view: AdversaryView, effort: Effort, read: Callable[[AdversaryView], Iterator[ReadVector]] = party_vectors
) -> tuple[RoundReconstruction, ...]:
    """Reads the vectors about the coordinator's own weights: the parties' answers, or the opened sums."""
    asked = [one for one in gradients(read(view)) if one.round.state]
    own = (imprinted_state(one.round.state, view.public.model, effort)["weights"] for one in asked)
    about = [one for one, made in zip(asked, own, strict=True) if np.array_equal(made, one.round.state["weights"])]
    return tuple(_documents_behind(one, view, effort) for one in about)


def _documents_behind(vector: ReadVector, view: AdversaryView, effort: Effort) -> RoundReconstruction:
    shape = shape_of(vector, view.public.model)
    imprint = imprint_for(shape, effort[_EXPECTED], int(vector.round.state["step"][0]))
    parts, summands = shape.views(vector.blocks[GRADIENT]), 1 if vector.party else len(view.public.members)
    error = vector.round.terms.grid * float(np.sqrt(summands / 6.0))  # of a difference of two sums of rounded numbers
    error += _ROUNDING * float(np.abs(parts["words"]).max())
    found: list[Array] = []
    words, biases = (between(parts[name], imprint) for name in ("words", "words_bias"))
    for place, bias in enumerate(biases):
        if bias <= 6 * error:
            continue
        # one or two documents of this bin that add up to these inputs; none unless exactly one set of them does
        inputs, unsure = words[:, place] / bias, max(_LEAST_ERROR, error / bias)
        for read in (one_document, two_documents):
            fitting = [several for several in read(inputs, unsure) if all(in_bin(imprint, place, one) for one in several)]
            if len(fitting) == 1:
                for document in fitting[0]:
                    if not any(np.array_equal(document, other) for other in found[-2:]):  # one on a threshold is in two bins
                        found.append(document)
                break
    return RoundReconstruction(vector.round.serial, vector.party, tuple(found))


TRAP_ANSWERS = Attack(
    name="trap_answers",
    title="Documents from one party's answer, behind weights made for it",
    citation=_CITATION,
    cost="a second on one core for one answer",
    given="the model's settings and words, about how many documents are in an answer, and weights of its choice",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=DOCUMENTS,
    bears_on=("singling out", "inference"),
    attack=attack,
    judge=judged_documents,
    efforts=(_EXPECTED,),
    malicious_state=imprinted_state,
    limits=(
        "comparing two rounds, sessions or set-ups, in which a value under a mask might repeat",
        "answers with noise, for which it has closed forms only",
    ),
)

TRAP_WEIGHTS = replace(
    TRAP_ANSWERS,
    either=(),
    name="trap_weights",
    title="Documents from the sum over all parties, behind weights made for it",
    cost="a second on one core for one sum; nothing beside the weights has to be changed",
    given="the model's settings and words, about how many documents are in a sum, and weights of its choice",
    needs=(REQUEST, TOTAL, VOCABULARY),
    attack=partial(attack, read=totals),
    limits=(
        "hiding: a party that looks at the weights, or at how little the model learns in such a round, notices them",
        "sums of many more documents than the first layer is wide: it finds about as many documents as that layer is wide",
        "weights that select documents with a word of the coordinator's choice, which would find more in large sums",
        "parties that train for whole epochs before they answer, and sums with noise, for which it has closed forms only",
    ),
    remark="A secure sum hides who sent a vector, but not its content. The weights decide what the sum shows, and the "
    "coordinator chooses them.",
)
