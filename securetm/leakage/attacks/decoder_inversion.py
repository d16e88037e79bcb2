"""A single document out of the decoder's gradient alone: all that models whose encoder never sees words would show.

It ignores the encoder's part of the gradient, so it speaks for contextual models too. It needs one document in an answer.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Reconstruction
from securetm.leakage.parts.closed_form import document_behind
from securetm.leakage.parts.prodlda_layers import GRADIENT, documents_said, layers_of, shape_of
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, ReadVector, party_vectors
from securetm.models.neural.prodlda import ProdLDA


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by the adversary: one document from each vector that holds one."""
    heard = [one for one in party_vectors(view) if GRADIENT in one.blocks]
    alone = [one for one in heard if documents_said(one, effort["documents"]) == 1][: effort["documents"]]
    return tuple(_guess(one, view) for one in alone)


def _guess(heard: ReadVector, view: AdversaryView) -> Reconstruction:
    model = cast(ProdLDA, view.public.model)
    weights = shape_of(heard, model).views(np.asarray(heard.round.state["weights"], dtype=np.float64))
    document = document_behind(layers_of(heard, model), weights["topics"], weights["background"], model.gain)
    return Reconstruction(heard.round.serial, heard.party, () if document is None else (document,))


ATTACK = Attack(
    name="decoder_inversion",
    title="A document from the decoder's gradient alone",
    citation="the decoder's part of gradient inversion; softmax shows counts as expectation less gradient",
    cost="well under a second on one core for one answer",
    given="the weights that were sent out, the model's settings and words",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=("documents",),
    limits=("answers that hold more than one document",),
)
