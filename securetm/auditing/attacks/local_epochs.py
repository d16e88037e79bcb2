"""Words and documents from the model difference that a party sends after training ProdLDA alone for whole epochs.

A document's input is the same at every step, so the sum of plain gradient steps is a cone like that of one gradient. Adam's
steps keep only the signs, and which words move alike.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import cast

import numpy as np

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.closed_form import GradientLayers, documents_in, linked_words, words_in
from securetm.auditing.parts.reconstruction_scores import MEASURES, judged
from securetm.auditing.parts.weight_updates import MOST_ROWS, RecoveredGradient, groups_alike
from securetm.auditing.reading import BY_PARTIES, ReadVector, party_vectors
from securetm.contracts import Array
from securetm.models.neural.network_shape import NetworkShape
from securetm.models.neural.optimisers import ADAM
from securetm.models.neural.prodlda import ProdLDA

_DIFFERENCE, _DOCUMENTS = "difference", "documents"
_EVEN = 2e-3  # how far Adam's steps along two multiples of one gradient may differ, as a share of them


def attack(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Reads the differences that the parties sent."""
    differences = (vector for vector in party_vectors(view) if _DIFFERENCE in vector.blocks)
    return tuple(_reconstructed(vector, cast(ProdLDA, view.public.model)) for vector in islice(differences, effort["answers"]))


def _reconstructed(vector: ReadVector, model: ProdLDA) -> RoundReconstruction:
    stated = float(vector.blocks[_DOCUMENTS][0])
    held = round(stated) if 1 <= stated <= 1e6 else model.hidden
    shape = NetworkShape.of(vector.blocks[_DIFFERENCE], model.hidden, model.n_topics)
    layers = GradientLayers.of(shape.views(-np.asarray(vector.blocks[_DIFFERENCE], dtype=np.float64)), vector.round.terms.grid)
    occur = words_in(layers)
    if model.optimiser == ADAM:
        return RoundReconstruction(vector.round.serial, vector.party, (), occur, _linked(layers.words[occur], occur))
    words = shape.views(np.asarray(vector.round.state["weights"]))["words"]
    step = max(vector.round.terms.grid, held * float(np.median(np.spacing(np.abs(words)))))  # the weights are rounded as well
    rounded = replace(layers, step=step)
    documents, groups = tuple(documents_in(rounded, held)), tuple(linked_words(rounded, 1))
    return RoundReconstruction(vector.round.serial, vector.party, documents, occur, groups)


def _linked(rows: Array, occur: Array) -> tuple[Array, ...]:
    """Words of one document alone move alike at every step: in the same direction in each column, and about as far."""
    if not 0 < len(rows) <= MOST_ROWS:
        return ()
    errors = _EVEN * np.abs(rows) + _EVEN * float(np.median(np.abs(rows)))
    return tuple(occur[group] for group in groups_alike(RecoveredGradient(rows, errors)) if len(group) > 1)


ATTACK = Attack(
    name="local_epochs",
    title="Words and documents from a party's model difference",
    citation="Geiping et al. 2020 (arXiv 2003.14053), on differences of models (McMahan et al. 2017, arXiv 1602.05629); that a "
    "document's input makes one ray of all its steps, and the links behind Adam, are our own",
    cost="under a second on one core for an answer over thousands of documents",
    given="the model's settings and words, and how many documents a party has",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=MEASURES,
    attack=attack,
    judge=judged,
    efforts=("answers",),
    limits=(
        "whole documents behind Adam, which leaves little of a gradient's size",
        "whole documents where a party has more of them than the model's first layer is wide",
        "noise: it does not model noise, so it names every word and finds nothing more",
        f"which words belong together, where more than {MOST_ROWS:,} of them move behind Adam",
        "the sum over all parties' differences, where the coordinator sees no single party's",
        "comparing the differences of several rounds over the same documents",
    ),
)
