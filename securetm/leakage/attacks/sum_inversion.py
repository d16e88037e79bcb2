"""What the opened sum over all parties still shows of their documents: words, words that belong together, whole documents.

It knows nothing of who sent what; a secure sum is not attacked here, only what it opens.
"""

from __future__ import annotations

from dataclasses import replace

from securetm.leakage.attack import Attack, Effort, Guess, Judged, Truth
from securetm.leakage.parts.gradients import documents_in, linked_words, words_in
from securetm.leakage.parts.prodlda_layers import GRADIENT, documents_said, layers_of
from securetm.leakage.parts.rebuilt import (
    EXACT,
    LINKED,
    LINKS_FOUND,
    PRECISION,
    RECALL,
    TOGETHER,
    TRUE_GUESSES,
    judged_documents,
    judged_links,
    judged_words,
)
from securetm.leakage.reading import REQUEST, TOTAL, Heard, totals
from securetm.leakage.views import VOCABULARY, View


def attack(view: View, effort: Effort) -> tuple[Guess, ...]:
    """Run by whoever sees totals."""
    heard = [one for one in totals(view) if GRADIENT in one.blocks][: effort["rounds"]]
    return tuple(_guess(one, view) for one in heard)


def _guess(heard: Heard, view: View) -> Guess:
    layers = layers_of(heard, view.public.model)
    documents = documents_in(layers, documents_said(heard, layers.words.shape[1]))
    groups = linked_words(layers, len(view.public.members))
    return Guess(heard.asked.serial, "", tuple(documents), words_in(layers), tuple(groups))


def judge(guesses: tuple[Guess, ...], truth: Truth) -> Judged:
    """Run by the judge."""
    documents = judged_documents(guesses, truth)
    return replace(documents, measures={**documents.measures, **judged_words(guesses, truth), **judged_links(guesses, truth)})


ATTACK = Attack(
    name="sum_inversion",
    title="Words and documents from the sum over all parties",
    citation="as gradient_inversion; words alone in a sum: arXiv 2508.04285 (what sparse sums leak)",
    cost="seconds on one core for one sum of a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(),
    models=("prodlda",),
    measures={
        EXACT: "document",
        TRUE_GUESSES: "guessed document",
        PRECISION: "word in a round",
        RECALL: "word in a round",
        TOGETHER: "document",
        LINKED: "pair of words",
        LINKS_FOUND: "pair of words",
    },
    attack=attack,
    judge=judge,
    limits=(
        "sums of more documents than the model's first layer is wide, of which it sees words and links only",
        "two sums over almost the same documents, which tell more than each alone",
    ),
)
