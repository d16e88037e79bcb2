"""One party's documents from its ciphertexts, for a coordinator that got the shared secret key from a colluding party.

It breaks no encryption: all parties hold one key, so one colluding party is enough.
"""

from __future__ import annotations

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, RoundReconstruction, Score
from securetm.auditing.parts.opened_answers import opened_answers
from securetm.auditing.parts.prodlda_layers import GRADIENT, invert_gradient
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, WORDS, judged
from securetm.auditing.parts.shared_keys import opened_by_key
from securetm.auditing.reading import ANSWER, BY_PARTIES

OPENED = "answers of single parties that are opened"
_REBUILT = {**DOCUMENTS, **WORDS}


def attack(view: AdversaryView, effort: Effort) -> tuple[tuple[RoundReconstruction, ...], Proportion]:
    """Opens the honest parties' answers with a helper's key, if there is one, and inverts their gradients.

    The second value is how many of the answers the key opened.
    """
    answers = opened_answers(view) if view.seen.get(ANSWER) else opened_by_key(view)
    honest = [one for one in answers if one.vector.party not in view.helpers and GRADIENT in one.vector.blocks]
    tried = honest[: effort["answers"]]
    guesses = tuple(invert_gradient(one.vector, view.public.model) for one in tried)
    return guesses, Proportion(sum(one.in_clear for one in tried), len(tried))


def judge(found: tuple[tuple[RoundReconstruction, ...], Proportion], truth: GroundTruth) -> Score:
    """Counts opened answers, exact documents and words."""
    guesses, opened = found
    return judged(guesses, truth, _REBUILT, {OPENED: opened})


ATTACK = Attack(
    name="shared_key",
    title="Documents from encrypted answers, with the key of one party that helps",
    citation="Zhang et al. 2020 (BatchCrypt), one key pair for all parties; then Geiping et al. 2020 (arXiv 2003.14053)",
    cost="well under a second on one core for one answer, decrypted and inverted",
    given="the key of one party that helps, the model's settings and words, and how many documents an answer holds",
    either=BY_PARTIES,
    models=("prodlda",),
    measures={**_REBUILT, OPENED: "answer"},
    attack=attack,
    judge=judge,
    efforts=("answers",),
    limits=("keys of an earlier session", "optimisation, which answers with noise would need"),
    remark="All parties of an encrypted sum hold one secret key, so one colluding party is enough. The profiles ckks and bfv "
    "claim nothing against a coordinator with a colluding party. The threat model lone_coordinator excludes such a party, and "
    "colluding_parties includes it.",
)
