"""Documents from one party's gradient by optimisation, where no closed form applies: the decoder's gradient of a batch.

It changes guessed documents until their gradient fits, from several starts. It need not know the noise of the documents.
"""

from __future__ import annotations

from typing import cast

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.matching_search import ObservedGradient, best_match
from securetm.auditing.parts.prodlda_layers import document_count, gradients, layers_of, weights_of
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.auditing.reading import BY_PARTIES, ReadVector, party_vectors
from securetm.models.neural.prodlda import ProdLDA

_ENCODER_TOO = 2  # of `parts`: 1 is the decoder's gradient alone
_MOST = 64  # documents in one answer; tried if noise makes the number in the answer impossible


def attack(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Matches the gradients of as many answers as the plan says."""
    vectors = gradients(party_vectors(view))[: effort["answers"]]
    return tuple(_match(one, cast(ProdLDA, view.public.model), effort) for one in vectors)


def _match(vector: ReadVector, model: ProdLDA, effort: Effort) -> RoundReconstruction:
    weights, layers = weights_of(vector, model), layers_of(vector, model)
    held, with_encoder = document_count(vector, _MOST) or 1, effort["parts"] >= _ENCODER_TOO
    seen = ObservedGradient(layers, weights["topics"], weights["background"], model.gain, held, with_encoder)
    documents, _ = best_match(seen, effort["starts"])
    return RoundReconstruction(vector.round.serial, vector.party, tuple(documents))


ATTACK = Attack(
    name="gradient_matching",
    title="Documents from one party's gradient by matching it",
    citation="Zhu et al. 2019 (arXiv 1906.08935), Geiping et al. 2020 (arXiv 2003.14053); the prior on whole counts is our own",
    cost="two seconds on one core for one start and an answer of eight documents",
    given="the weights that were sent out, the model's settings and words, and how many documents an answer holds",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=("answers", "starts", "parts"),  # parts: 1 is the decoder's gradient alone, 2 adds the first layer's
    limits=(
        "finding out which documents took part where secret coins chose them: shares are then of all documents",
        "many documents in an answer: it finds fewer of them; more starts help, up to the model's number of topics",
        "the documents' own noise, which an attacker could repeat who knows what a party calls its source of documents",
        "noise: it fits the numbers that it sees, and does not model how noise was drawn",
    ),
    remark="Where the first layer's gradient is exact, the closed form (gradient_inversion) is faster and finds more. This "
    "attack is for what the closed form cannot read: the decoder's gradient of several documents.",
)
