"""Documents from gradients of neural models in closed form: one party's gradient, its decoder part alone, or the sum of all.

It optimises nothing, and it need not know the noise that the model drew for a document. It opens no sealed vector, but reads
the numbers that such a vector shows.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from securetm.auditing.adversary_view import VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.closed_form import document_behind
from securetm.auditing.parts.prodlda_layers import document_count, gradients, invert_gradient, layers_of, weights_of
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, MEASURES, WORDS, judged, judged_documents
from securetm.auditing.reading import BY_PARTIES, REQUEST, TOTAL, ReadVector, party_vectors, totals
from securetm.models.neural.contextual import ContextualTopicModel
from securetm.models.neural.prodlda import ProdLDA

_ENCODERS = ("prodlda", "neural-lda", "combined-tm")  # whose encoders read words
_DECODERS = ("prodlda", "combined-tm", "zeroshot-tm")  # that are products of experts
_DOCUMENTS_AND_WORDS = {**DOCUMENTS, **WORDS}


def invert_answers(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Inverts the parties' gradients one by one, until they hold enough documents."""
    found, documents = list[RoundReconstruction](), 0
    for vector in gradients(party_vectors(view)):
        if documents < effort["documents"]:
            found.append(invert_gradient(vector, view.public.model))
            documents += document_count(vector, effort["documents"])
    return tuple(found)


def invert_sums(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Inverts the opened sums."""
    sums, parties = gradients(totals(view))[: effort["rounds"]], len(view.public.members)
    return tuple(invert_gradient(one, view.public.model, parties) for one in sums)


def invert_decoders(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Finds the document of each gradient of a single document. It reads only the decoder's part of the gradient."""
    most = effort["documents"]
    alone = [one for one in gradients(party_vectors(view)) if document_count(one, most) == 1][:most]
    return tuple(_from_decoder(one, view) for one in alone)


def _from_decoder(vector: ReadVector, view: AdversaryView) -> RoundReconstruction:
    model = cast(ProdLDA | ContextualTopicModel, view.public.model)
    weights = weights_of(vector, model)
    document = document_behind(layers_of(vector, model), weights["topics"], weights["background"], model.gain)
    return RoundReconstruction(vector.round.serial, vector.party, () if document is None else (document,))


GRADIENT_INVERSION = Attack(
    name="gradient_inversion",
    title="Documents from one party's gradient",
    citation="Geiping et al. 2020 (a layer's gradient over its bias'); for batches the corners of the gradient's cone",
    cost="well under a second on one core for one answer of up to 64 documents",
    given="the model's settings and words, and how many documents an answer holds; nothing about the documents",
    either=BY_PARTIES,
    models=_ENCODERS,
    measures=_DOCUMENTS_AND_WORDS,
    attack=invert_answers,
    judge=partial(judged, wanted=_DOCUMENTS_AND_WORDS),
    efforts=("documents",),
    limits=(
        "optimisation, which coarsely rounded, clipped or noised gradients need",
        "comparing consecutive rounds",
    ),
)

SUM_INVERSION = Attack(
    name="sum_inversion",
    title="Words and documents from the sum over all parties",
    citation="Geiping et al. 2020 (arXiv 2003.14053), a layer's gradient over its bias'; words of one document alone in a sum: "
    "arXiv 2508.04285, on sparse sums; the corners of the cone are our own",
    cost="under a second on one core for one sum of a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=_ENCODERS,
    measures=MEASURES,
    attack=invert_sums,
    judge=judged,
    limits=(
        "sums of more documents than the model's first layer is wide: it finds only words and links in them",
        "noise: it does not model noise, so it names every word and finds nothing more",
        "two sums over almost the same documents, which show more together than each alone",
    ),
)

DECODER_INVERSION = Attack(
    name="decoder_inversion",
    title="A document from the decoder's gradient alone",
    citation="the decoder's part of gradient inversion; softmax shows counts as expectation less gradient",
    cost="well under a second on one core for one answer",
    given="the weights that were sent out, the model's settings and words",
    either=BY_PARTIES,
    models=_DECODERS,
    measures=DOCUMENTS,
    attack=invert_decoders,
    judge=judged_documents,
    efforts=("documents",),
    limits=("answers that hold more than one document",),
)
