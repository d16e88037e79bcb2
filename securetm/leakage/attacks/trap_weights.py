"""Documents out of the sum over all parties, by a coordinator that shows them weights made for it instead of the model's.

A secure sum is not attacked here, only what it opens; every message keeps to the protocol.
"""

from __future__ import annotations

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Reconstruction
from securetm.leakage.parts.imprinted_weights import CITATION, EXPECTED, documents_behind, imprinted_state
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, judged_documents
from securetm.leakage.reading import REQUEST, TOTAL, totals


def attack(view: AdversaryView, effort: Effort) -> tuple[Reconstruction, ...]:
    """Run by the same coordinator, on the sums over which its weights were asked about."""
    guesses = (documents_behind(heard, view.public, effort) for heard in totals(view))
    return tuple(guess for guess in guesses if guess is not None)


ATTACK = Attack(
    name="trap_weights",
    title="Documents from the sum over all parties, behind weights made for it",
    citation=CITATION,
    cost="a second on one core for one sum; nothing beside the weights has to be changed",
    given="the model's settings and words, about how many documents are in a sum, and weights of its choice",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(),
    models=("prodlda",),
    measures=DOCUMENTS,
    attack=attack,
    judge=judged_documents,
    efforts=(EXPECTED,),
    malicious_state=imprinted_state,
    limits=(
        "it does not hide: whoever looks at the weights, or at how little the model learns in such a round, sees them",
        "of sums with many more documents than the first layer is wide, about as many documents as it is wide",
        "weights that single out documents with a word of the coordinator's choice, which would reach further into large sums",
        "parties that train for whole epochs before they answer, and behind noise anything but closed forms",
    ),
    remark="A sum hides who said something, not what was said: who chooses the weights chooses what the sum says.",
)
