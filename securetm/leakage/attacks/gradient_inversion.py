"""Documents out of what one party sends while ProdLDA is trained: the first layer's gradient, solved in closed form.

It optimises nothing and needs no knowledge of the documents' noise; what is sealed it reads as the numbers that it shows.
"""

from __future__ import annotations

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Reconstruction, Score
from securetm.leakage.parts.gradient_reconstruction import invert_gradient
from securetm.leakage.parts.prodlda_layers import GRADIENT, documents_said
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, WORDS, judged
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, party_vectors

_MEASURES = {**DOCUMENTS, **WORDS}


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by the adversary: the documents in every party's vectors, until there are enough of them."""
    guesses, looked_at = list[Reconstruction](), 0
    for heard in party_vectors(view):
        if GRADIENT in heard.blocks and looked_at < effort["documents"]:
            guesses.append(invert_gradient(heard, view.public.model))
            looked_at += documents_said(heard, effort["documents"])
    return tuple(guesses)


def judge(guesses: tuple[Reconstruction, ...], truth: GroundTruth) -> Score:
    """Run by the judge: exact documents, and words."""
    return judged(guesses, truth, _MEASURES)


ATTACK = Attack(
    name="gradient_inversion",
    title="Documents from one party's gradient",
    citation="Geiping et al. 2020 (a layer's gradient over its bias'); for batches the corners of the gradient's cone",
    cost="well under a second on one core for one answer of up to 64 documents",
    given="the model's settings and words, and how many documents an answer holds; nothing about the documents",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures=_MEASURES,
    attack=attack,
    judge=judge,
    efforts=("documents",),
    limits=(
        "optimisation, which gradients that are rounded coarsely, clipped or noised would need",
        "what one round tells about the next",
    ),
)
