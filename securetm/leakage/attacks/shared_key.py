"""One party's documents from its ciphertexts, for a coordinator to whom another party gave the key that all of them share.

It is no attack on encryption. It shows what hangs on one key that many hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Proportion, Reconstruction, Score
from securetm.leakage.parts.gradient_reconstruction import invert_gradient
from securetm.leakage.parts.prodlda_layers import GRADIENT
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, WORDS, judged
from securetm.leakage.parts.shared_keys import DecryptedAnswer, opened_by_key
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, party_vectors

OPENED = "answers of single parties that are opened"
_REBUILT = {**DOCUMENTS, **WORDS}


@dataclass(frozen=True)
class DecryptedAnswers:
    """What was made of the answers of parties that help nobody."""

    guesses: tuple[Reconstruction, ...]
    opened: int
    of: int


def attack(view: AdversaryView, effort: Effort) -> DecryptedAnswers:
    """Run by the coordinator: with the key of a helper, or with none."""
    helping = {insider.name for insider in view.insiders}
    theirs = [one for one in _answers(view) if one.heard.party not in helping and GRADIENT in one.heard.blocks]
    looked_at = theirs[: effort["answers"]]
    guesses = tuple(invert_gradient(one.heard, view.public.model) for one in looked_at)
    return DecryptedAnswers(guesses, sum(one.with_key for one in looked_at), len(looked_at))


def _answers(view: AdversaryView) -> list[DecryptedAnswer]:
    if view.seen.get(ANSWER):  # nothing is locked
        return [DecryptedAnswer(heard, True) for heard in party_vectors(view)]
    return list(opened_by_key(view))


def judge(read: DecryptedAnswers, truth: GroundTruth) -> Score:
    """Run by the judge."""
    return judged(read.guesses, truth, _REBUILT, {OPENED: Proportion(read.opened, read.of)})


ATTACK = Attack(
    name="shared_key",
    title="Documents from encrypted answers, with the key of one party that helps",
    citation="Zhang et al. 2020 (BatchCrypt), one key pair for all parties; then Geiping et al. 2020 (arXiv 2003.14053)",
    cost="well under a second on one core for one answer, decrypted and inverted",
    given="the key of one party that helps, the model's settings and words, and how many documents an answer holds",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
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
