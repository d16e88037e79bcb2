"""One party's documents from its ciphertexts, for a coordinator to whom another party gave the key that all of them share.

It is no attack on encryption. It shows what hangs on one key that many hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from securetm.leakage.attack import Attack, Counted, Effort, Guess, Judged, Truth
from securetm.leakage.parts.gradients import documents_in, words_in
from securetm.leakage.parts.prodlda_layers import GRADIENT, documents_said, layers_of
from securetm.leakage.parts.rebuilt import EXACT, PRECISION, RECALL, TRUE_GUESSES, judged_documents, judged_words
from securetm.leakage.parts.shared_keys import Opened, opened_by_key
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, Heard, said_by_parties
from securetm.leakage.views import VOCABULARY, View

OPENED = "answers of single parties that are opened"


@dataclass(frozen=True)
class Read:
    """What was made of the answers of parties that help nobody."""

    guesses: tuple[Guess, ...]
    opened: int
    of: int


def attack(view: View, effort: Effort) -> Read:
    """Run by the coordinator: with the key of a helper, or with none."""
    helping = {insider.name for insider in view.insiders}
    theirs = [one for one in _answers(view) if one.heard.party not in helping and GRADIENT in one.heard.blocks]
    looked_at = theirs[: effort["answers"]]
    guesses = tuple(_guess(one.heard, view) for one in looked_at)
    return Read(guesses, sum(one.with_key for one in looked_at), len(looked_at))


def _answers(view: View) -> list[Opened]:
    if view.seen.get(ANSWER):  # nothing is locked
        return [Opened(heard, True) for heard in said_by_parties(view)]
    return list(opened_by_key(view))


def _guess(heard: Heard, view: View) -> Guess:
    layers = layers_of(heard, view.public.model)
    documents = documents_in(layers, documents_said(heard, layers.words.shape[1]))
    return Guess(heard.asked.serial, heard.party, tuple(documents), words_in(layers))


def judge(read: Read, truth: Truth) -> Judged:
    """Run by the judge."""
    documents = judged_documents(read.guesses, truth)
    words = judged_words(read.guesses, truth)
    return replace(documents, measures={**documents.measures, **words, OPENED: Counted(read.opened, read.of)})


ATTACK = Attack(
    name="shared_key",
    title="Documents from encrypted answers, with the key of one party that helps",
    citation="the setting is that of BatchCrypt (Zhang et al. 2020): one key pair for all parties; then as gradient_inversion",
    cost="decrypting takes milliseconds for a hundred thousand numbers; then as gradient_inversion",
    given="the key of one party that helps, the model's settings and words, and how many documents an answer holds",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures={
        EXACT: "document",
        TRUE_GUESSES: "guessed document",
        PRECISION: "word in a round",
        RECALL: "word in a round",
        OPENED: "answer",
    },
    attack=attack,
    judge=judge,
    efforts=("answers",),
    limits=("keys of an earlier session", "optimisation, which answers with noise would need"),
    remark="One secret key serves all parties of an encrypted sum, so one party that helps is enough. The profiles ckks and "
    "bfv say so themselves and claim nothing against a coordinator with a helper; the threat model lone_coordinator leaves "
    "such a helper out of its scope, and colluding_parties fears it.",
)
