"""One party's documents from its ciphertexts, for a coordinator that got the shared secret key from a colluding party.

It breaks no encryption. It shows what depends on one key that many parties hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Proportion, RoundReconstruction, Score
from securetm.leakage.parts.opened_answers import OpenedAnswer, opened_answers
from securetm.leakage.parts.prodlda_layers import GRADIENT, invert_gradient
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, WORDS, judged
from securetm.leakage.parts.shared_keys import opened_by_key
from securetm.leakage.reading import ANSWER, BY_PARTIES, REQUEST

OPENED = "answers of single parties that are opened"
_REBUILT = {**DOCUMENTS, **WORDS}


@dataclass(frozen=True)
class DecryptedAnswers:
    """The documents in the answers of honest parties, and how many of these answers the key opened."""

    guesses: tuple[RoundReconstruction, ...]
    opened: Proportion


def attack(view: AdversaryView, effort: Effort) -> DecryptedAnswers:
    """Opens the honest parties' answers with the key of a helper, if there is one, and inverts their gradients."""
    answers = [one for one in _answers(view) if one.heard.party not in view.helpers and GRADIENT in one.heard.blocks]
    answers = answers[: effort["answers"]]
    guesses = tuple(invert_gradient(one.heard, view.public.model) for one in answers)
    return DecryptedAnswers(guesses, Proportion(sum(one.whole for one in answers), len(answers)))


def _answers(view: AdversaryView) -> list[OpenedAnswer]:
    return list(opened_answers(view) if view.seen.get(ANSWER) else opened_by_key(view))


def judge(found: DecryptedAnswers, truth: GroundTruth) -> Score:
    """Counts opened answers, exact documents and words."""
    return judged(found.guesses, truth, _REBUILT, {OPENED: found.opened})


ATTACK = Attack(
    name="shared_key",
    title="Documents from encrypted answers, with the key of one party that helps",
    citation="Zhang et al. 2020 (BatchCrypt), one key pair for all parties; then Geiping et al. 2020 (arXiv 2003.14053)",
    cost="well under a second on one core for one answer, decrypted and inverted",
    given="the key of one party that helps, the model's settings and words, and how many documents an answer holds",
    needs=(REQUEST, VOCABULARY),
    either=BY_PARTIES,
    models=("prodlda",),
    measures={**_REBUILT, OPENED: "answer"},
    attack=attack,
    judge=judge,
    efforts=("answers",),
    limits=("keys of an earlier session", "optimisation, which answers with noise would need"),
    remark="One secret key serves all parties of an encrypted sum, so one party that helps is enough. The profiles ckks and "
    "bfv say so themselves and claim nothing against a coordinator with a helper; the threat model lone_coordinator leaves "
    "such a helper out of its scope, and colluding_parties fears it.",
)
