"""A coordinator's own weights for ProdLDA, and the documents in what is said about them: what several attacks do alike.

It breaks no seal and no rule that a party could check: shapes are right and values finite. Only the weights are not honest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.leakage.adversary_view import PublicFacts
from securetm.leakage.attack import Effort, Reconstruction
from securetm.leakage.parts.bin_contents import one_document, two_documents
from securetm.leakage.parts.imprint_layer import ImprintLayer, between, imprint_for, in_bin, weights_of
from securetm.leakage.parts.prodlda_layers import GRADIENT, shape_of
from securetm.leakage.reading import ReadVector
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.prodlda_losses import Prior, Shape

CITATION = (
    "Fowl et al. 2022 (arXiv 2110.13057), the bins; Boenisch et al. 2023 (arXiv 2112.02918), trap weights; that two documents "
    "in a bin come apart by their counts is our own"
)
EXPECTED = "documents"  # about so many are in a vector, as a plan says
_LEAST_ERROR = 3e-4  # of a number, in parts of a document's length: what documents in the next bins leave behind
_ROUNDING = 3e-7  # of sums in 32 bits, in parts of the largest


def imprinted_state(state: State, model: TopicModel, effort: Effort) -> State:
    """Run by the coordinator that lies: another trap in each round, for about so many documents in a sum."""
    network, flat = cast(ProdLDA, model), state["weights"]
    shape = Shape.of(flat, network.hidden, network.n_topics)
    trap = imprint_for(shape, effort[EXPECTED], int(state["step"][0]))
    prior = Prior.laplace(network.alpha, network.n_topics, network.prior_weight)
    return {**state, "weights": weights_of(trap, shape, prior, network.dtype)}


def documents_behind(heard: ReadVector, public: PublicFacts, effort: Effort) -> Reconstruction | None:
    """What a vector about the coordinator's own weights shows, one party's or the sum of all; nothing of one about others."""
    shown = heard.round.state
    if GRADIENT not in heard.blocks or not shown:
        return None
    if not np.array_equal(imprinted_state(shown, public.model, effort)["weights"], shown["weights"]):
        return None
    return _guess(heard, public, effort)


def _guess(heard: ReadVector, public: PublicFacts, effort: Effort) -> Reconstruction:
    shape = shape_of(heard, public.model)
    trap, parts = imprint_for(shape, effort[EXPECTED], int(heard.round.state["step"][0])), shape.views(heard.blocks[GRADIENT])
    summands = 1 if heard.party else len(public.members)
    error = heard.round.step * float(np.sqrt(summands / 6.0))  # of a difference of two sums of rounded numbers
    error += _ROUNDING * float(np.abs(parts["words"]).max())
    found: list[Array] = []
    for document in _documents(between(parts["words"], trap), between(parts["words_bias"], trap), trap, error):
        if not any(np.array_equal(document, other) for other in found[-2:]):  # one that lies on a threshold is in two bins
            found.append(document)
    return Reconstruction(heard.round.serial, heard.party, tuple(found))


def _documents(words: Array, biases: Array, trap: ImprintLayer, error: float) -> Iterator[Array]:
    """Bin by bin: one document, or two, or more than can be told apart."""
    for place, bias in enumerate(biases):
        if bias > 6 * error:
            yield from _told_apart(words[:, place] / bias, max(_LEAST_ERROR, error / bias), trap, place)


def _told_apart(inputs: Array, error: float, trap: ImprintLayer, place: int) -> tuple[Array, ...]:
    """What adds up to these inputs, if it lies where its bin is, and nothing else does."""
    for read in (one_document, two_documents):
        fitting = [tuple(documents) for documents in read(inputs, error) if all(in_bin(trap, place, one) for one in documents)]
        if len(fitting) == 1:
            return fitting[0]
    return ()
