"""What the opened sum over all parties still shows of their documents: words, words that belong together, whole documents.

It knows nothing of who sent what; a secure sum is not attacked here, only what it opens.
"""

from __future__ import annotations

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Reconstruction
from securetm.leakage.parts.gradient_reconstruction import invert_gradient
from securetm.leakage.parts.prodlda_layers import GRADIENT
from securetm.leakage.parts.reconstruction_scores import MEASURES, judged
from securetm.leakage.reading import REQUEST, TOTAL, totals


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by whoever sees totals."""
    heard = [one for one in totals(view) if GRADIENT in one.blocks][: effort["rounds"]]
    return tuple(invert_gradient(one, view.public.model, len(view.public.members)) for one in heard)


ATTACK = Attack(
    name="sum_inversion",
    title="Words and documents from the sum over all parties",
    citation="Geiping et al. 2020 (arXiv 2003.14053), a layer's gradient over its bias'; words of one document alone in a sum: "
    "arXiv 2508.04285, on sparse sums; the corners of the cone are our own",
    cost="under a second on one core for one sum of a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(),
    models=("prodlda",),
    measures=MEASURES,
    attack=attack,
    judge=judged,
    limits=(
        "sums of more documents than the model's first layer is wide, of which it sees words and links only",
        "noise, of which it knows nothing: each word is then named, and nothing more is found",
        "two sums over almost the same documents, which tell more than each alone",
    ),
)
