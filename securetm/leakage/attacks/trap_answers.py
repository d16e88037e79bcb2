"""Documents out of one party's own answer, by a coordinator that shows it weights made for that instead of the model's.

What is sealed it reads as the numbers that it shows: weights change what is under a mask, and nothing about the mask.
"""

from __future__ import annotations

from securetm.leakage.attack import Attack, Effort, Guess
from securetm.leakage.parts.rebuilt import DOCUMENTS, judged_documents
from securetm.leakage.parts.trapped import CITATION, EXPECTED, meddle, rebuilt
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, said_by_parties
from securetm.leakage.views import VOCABULARY, View


def attack(view: View, effort: Effort) -> tuple[Guess, ...]:
    """Run by the same coordinator, on what every party said about its weights."""
    guesses = (rebuilt(heard, view.public, effort) for heard in said_by_parties(view))
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
    meddle=meddle,
    limits=(
        "two rounds, two sessions or two set-ups together, in which something under a mask might repeat",
        "behind noise anything but closed forms",
    ),
)
