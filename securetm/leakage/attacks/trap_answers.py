"""Documents out of one party's own answer, by a coordinator that shows it weights made for that instead of the model's.

What is sealed it reads as the numbers that it shows: weights change what is under a mask, and nothing about the mask.
"""

from __future__ import annotations

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Reconstruction
from securetm.leakage.parts.imprinted_weights import CITATION, EXPECTED, documents_behind, imprinted_state
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, party_vectors


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by the same coordinator, on what every party said about its weights."""
    guesses = (documents_behind(heard, view.public, effort) for heard in party_vectors(view))
    return tuple(guess for guess in guesses if guess is not None)


ATTACK = Attack(
    name="trap_answers",
    title="Documents from one party's answer, behind weights made for it",
    citation=CITATION,
    cost="a second on one core for one answer",
    given="the model's settings and words, about how many documents are in an answer, and weights of its choice",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=(EXPECTED,),
    malicious_state=imprinted_state,
    limits=(
        "two rounds, two sessions or two set-ups together, in which something under a mask might repeat",
        "behind noise anything but closed forms",
    ),
)
