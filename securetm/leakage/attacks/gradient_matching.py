"""Documents out of one party's gradient by optimisation: where no closed form applies, as for the decoder's part of a batch.

It moves made-up documents until their gradient fits, from several starts. It does not need what the documents' noise was.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Reconstruction
from securetm.leakage.parts.matching_search import ObservedGradient, best_match
from securetm.leakage.parts.prodlda_layers import GRADIENT, documents_said, layers_of, shape_of
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, ReadVector, party_vectors
from securetm.models.neural.prodlda import ProdLDA

_DECODER_ALONE, _ENCODER_TOO = 1, 2
_MOST = 64  # documents in one answer, as far as it is told apart; where noise says another number, so many are tried


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by the adversary, on as many answers as wanted."""
    heard = [one for one in party_vectors(view) if GRADIENT in one.blocks][: effort["answers"]]
    return tuple(_guess(one, cast(ProdLDA, view.public.model), effort) for one in heard)


def _guess(heard: ReadVector, model: ProdLDA, effort: Effort) -> Reconstruction:
    weights = shape_of(heard, model).views(np.asarray(heard.round.state["weights"], dtype=np.float64))
    layers, held = layers_of(heard, model), documents_said(heard, _MOST) or 1
    with_encoder = effort["parts"] >= _ENCODER_TOO
    seen = ObservedGradient(layers, weights["topics"], weights["background"], model.gain, held, with_encoder)
    documents, _ = best_match(seen, effort["starts"])
    return Reconstruction(heard.round.serial, heard.party, tuple(documents))


ATTACK = Attack(
    name="gradient_matching",
    title="Documents from one party's gradient by matching it",
    citation="Zhu et al. 2019 (arXiv 1906.08935), Geiping et al. 2020 (arXiv 2003.14053); the prior on whole counts is our own",
    cost="two seconds on one core for one start and an answer of eight documents",
    given="the weights that were sent out, the model's settings and words, and how many documents an answer holds",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=("answers", "starts", "parts"),  # parts: 1 is the decoder's gradient alone, 2 the first layer's too
    limits=(
        "telling which documents took part where secret coins chose them: shares are then of all documents",
        "many documents in an answer, of which it finds fewer and fewer: more starts help, up to the model's number of topics",
        "knowing the documents' noise, which somebody could who knows what a party calls its source of documents",
        "noise: it fits what it sees, and knows nothing of how noise was drawn",
    ),
    remark="Where the first layer's gradient is seen exactly, the closed form (gradient_inversion) is faster and finds more. "
    "This attack is for what the closed form cannot read: the decoder's gradient of several documents.",
)
