"""Documents out of the sum over all parties, by a coordinator that shows them weights made for it instead of the model's.

It breaks no seal and no rule that a party could check: shapes are right and values finite. Only the weights are not honest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.leakage.attack import Attack, Effort, Guess
from securetm.leakage.parts.crowded_bins import one_document, two_documents
from securetm.leakage.parts.prodlda_layers import GRADIENT, shape_of
from securetm.leakage.parts.rebuilt import DOCUMENTS, judged_documents
from securetm.leakage.parts.trap_layers import Trap, between, in_bin, trap_for, weights_of
from securetm.leakage.reading import REQUEST, TOTAL, Heard, totals
from securetm.leakage.views import VOCABULARY, View
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.prodlda_losses import Prior, Shape

_DOCUMENTS = "documents"
_LEAST_ERROR = 3e-4  # of a number, in parts of a document's length: what documents in the next bins leave behind
_ROUNDING = 3e-7  # of sums in 32 bits, in parts of the largest


def meddle(state: State, model: TopicModel, effort: Effort) -> State:
    """Run by the coordinator that lies: another trap in each round, for about so many documents in a sum."""
    network, flat = cast(ProdLDA, model), state["weights"]
    shape = Shape.of(flat, network.hidden, network.n_topics)
    trap = trap_for(shape, effort[_DOCUMENTS], int(state["step"][0]))
    prior = Prior.laplace(network.alpha, network.n_topics, network.prior_weight)
    return {**state, "weights": weights_of(trap, shape, prior, network.dtype)}


def attack(view: View, effort: Effort) -> tuple[Guess, ...]:
    """Run by the same coordinator, on the sums over which its weights were asked about."""
    return tuple(
        _guess(heard, view, effort) for heard in totals(view) if GRADIENT in heard.blocks and _is_trap(heard, view, effort)
    )


def _is_trap(heard: Heard, view: View, effort: Effort) -> bool:
    shown = heard.asked.state
    return bool(shown) and np.array_equal(meddle(shown, view.public.model, effort)["weights"], shown["weights"])


def _guess(heard: Heard, view: View, effort: Effort) -> Guess:
    shape = shape_of(heard, view.public.model)
    trap, parts = trap_for(shape, effort[_DOCUMENTS], int(heard.asked.state["step"][0])), shape.views(heard.blocks[GRADIENT])
    error = heard.asked.step * float(np.sqrt(len(view.public.members) / 6.0))  # of a difference of two sums of rounded numbers
    error += _ROUNDING * float(np.abs(parts["words"]).max())
    found: list[Array] = []
    for document in _documents(between(parts["words"], trap), between(parts["words_bias"], trap), trap, error):
        if not any(np.array_equal(document, other) for other in found[-2:]):  # one that lies on a threshold is in two bins
            found.append(document)
    return Guess(heard.asked.serial, "", tuple(found))


def _documents(words: Array, biases: Array, trap: Trap, error: float) -> Iterator[Array]:
    """Bin by bin: one document, or two, or more than can be told apart."""
    for place, bias in enumerate(biases):
        if bias > 6 * error:
            yield from _told_apart(words[:, place] / bias, max(_LEAST_ERROR, error / bias), trap, place)


def _told_apart(inputs: Array, error: float, trap: Trap, place: int) -> tuple[Array, ...]:
    """What adds up to these inputs, if it lies where its bin is, and nothing else does."""
    for read in (one_document, two_documents):
        fitting = [tuple(documents) for documents in read(inputs, error) if all(in_bin(trap, place, one) for one in documents)]
        if len(fitting) == 1:
            return fitting[0]
    return ()


ATTACK = Attack(
    name="trap_weights",
    title="Documents from the sum over all parties, behind weights made for it",
    citation="Fowl et al. 2022 (arXiv 2110.13057), the bins; Boenisch et al. 2023 (arXiv 2112.02918), trap weights; that two "
    "documents in a bin come apart by their counts is our own",
    cost="a second on one core for one sum; nothing beside the weights has to be changed",
    given="the model's settings and words, about how many documents are in a sum, and weights of its choice",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=(_DOCUMENTS,),
    meddle=meddle,
    limits=(
        "it does not hide: whoever looks at the weights, or at how little the model learns in such a round, sees them",
        "of sums with many more documents than the first layer is wide, about as many documents as it is wide",
        "weights that single out documents with a word of the coordinator's choice, which would reach further into large sums",
        "parties that train for whole epochs before they answer, and behind noise anything but closed forms",
    ),
    remark="A sum hides who said something, not what was said: who chooses the weights chooses what the sum says.",
)
