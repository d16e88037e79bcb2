"""Documents from answers about weights that a malicious coordinator made for that purpose, one party's or the sum of all.

Every message follows the protocol: shapes are right and values finite. The attack breaks no mask and no seal. It reads a sealed
answer as the numbers that it shows, and a secure sum after it was opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from securetm.auditing.adversary_view import VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.bin_contents import one_document, two_documents
from securetm.auditing.parts.imprint_layer import ImprintLayer, between, imprint_for, in_bin, weights_of
from securetm.auditing.parts.prodlda_layers import GRADIENT, shape_of
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.auditing.reading import BY_PARTIES, REQUEST, TOTAL, ReadVector, party_vectors, totals
from securetm.contracts import Array, State, TopicModel
from securetm.models.neural.network_shape import NetworkShape, Prior
from securetm.models.neural.prodlda import ProdLDA

_CITATION = (
    "Fowl et al. 2022 (arXiv 2110.13057), the bins; Boenisch et al. 2023 (arXiv 2112.02918), trap weights; that two documents "
    "in a bin come apart by their counts is our own"
)
_EXPECTED = "documents"  # about how many documents a vector holds, as the plan says
_LEAST_ERROR = 3e-4  # of a number, as a share of a document's length: what documents in neighbouring bins leave behind
_ROUNDING = 3e-7  # of sums in 32 bits, as a share of the largest number


def imprinted_state(state: State, model: TopicModel, effort: Effort) -> State:
    """The malicious coordinator's state: other imprint weights in each round, for about so many documents in a sum."""
    network, flat = cast(ProdLDA, model), state["weights"]
    shape = NetworkShape.of(flat, network.hidden, network.n_topics)
    imprint = imprint_for(shape, effort[_EXPECTED], int(state["step"][0]))
    prior = Prior.laplace(network.alpha, network.n_topics, network.prior_weight)
    return {**state, "weights": weights_of(imprint, shape, prior, network.dtype)}


def attack_answers(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Reads the parties' own answers."""
    return tuple(_reconstructed(party_vectors(view), view, effort))


def attack_sums(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Reads the opened sums."""
    return tuple(_reconstructed(totals(view), view, effort))


def _reconstructed(vectors: Iterator[ReadVector], view: AdversaryView, effort: Effort) -> Iterator[RoundReconstruction]:
    """Only of vectors about the coordinator's own weights."""
    for vector in vectors:
        if GRADIENT in vector.blocks and (shown := vector.round.state):
            made = imprinted_state(shown, view.public.model, effort)
            if np.array_equal(made["weights"], shown["weights"]):
                yield _documents_behind(vector, view, effort)


def _documents_behind(vector: ReadVector, view: AdversaryView, effort: Effort) -> RoundReconstruction:
    shape = shape_of(vector, view.public.model)
    imprint = imprint_for(shape, effort[_EXPECTED], int(vector.round.state["step"][0]))
    parts, summands = shape.views(vector.blocks[GRADIENT]), 1 if vector.party else len(view.public.members)
    error = vector.round.terms.grid * float(np.sqrt(summands / 6.0))  # of a difference of two sums of rounded numbers
    error += _ROUNDING * float(np.abs(parts["words"]).max())
    found: list[Array] = []
    words, biases = (between(parts[name], imprint) for name in ("words", "words_bias"))
    for place, bias in enumerate(biases):
        if bias > 6 * error:
            for document in _documents_in_bin(words[:, place] / bias, max(_LEAST_ERROR, error / bias), imprint, place):
                if not any(np.array_equal(document, other) for other in found[-2:]):  # one on a threshold is in two bins
                    found.append(document)
    return RoundReconstruction(vector.round.serial, vector.party, tuple(found))


def _documents_in_bin(inputs: Array, error: float, imprint: ImprintLayer, place: int) -> tuple[Array, ...]:
    """One or two documents of this bin that add up to these inputs; none unless exactly one set of them does."""
    for read in (one_document, two_documents):
        fitting = [tuple(found) for found in read(inputs, error) if all(in_bin(imprint, place, one) for one in found)]
        if len(fitting) == 1:
            return fitting[0]
    return ()


TRAP_ANSWERS = Attack(
    name="trap_answers",
    title="Documents from one party's answer, behind weights made for it",
    citation=_CITATION,
    cost="a second on one core for one answer",
    given="the model's settings and words, about how many documents are in an answer, and weights of its choice",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack_answers,
    judge=judged_documents,
    efforts=(_EXPECTED,),
    malicious_state=imprinted_state,
    limits=(
        "comparing two rounds, sessions or set-ups, in which a value under a mask might repeat",
        "answers with noise, for which it has closed forms only",
    ),
)

TRAP_WEIGHTS = Attack(
    name="trap_weights",
    title="Documents from the sum over all parties, behind weights made for it",
    citation=_CITATION,
    cost="a second on one core for one sum; nothing beside the weights has to be changed",
    given="the model's settings and words, about how many documents are in a sum, and weights of its choice",
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack_sums,
    judge=judged_documents,
    efforts=(_EXPECTED,),
    malicious_state=imprinted_state,
    limits=(
        "hiding: a party that looks at the weights, or at how little the model learns in such a round, notices them",
        "sums of many more documents than the first layer is wide: it finds about as many documents as that layer is wide",
        "weights that select documents with a word of the coordinator's choice, which would find more in large sums",
        "parties that train for whole epochs before they answer, and sums with noise, for which it has closed forms only",
    ),
    remark="A secure sum hides who sent a vector, but not its content. The weights decide what the sum shows, and the "
    "coordinator chooses them.",
)
