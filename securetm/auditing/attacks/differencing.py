"""One party's documents from two sums: the same question is asked of all parties, and of all but that party.

Each sum hides its parties; the difference of the two does not. It guesses nothing about documents that are in both sums.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, RoundReconstruction, Score
from securetm.auditing.parts.gradients import GRADIENT, apart, gradients, invert_gradient
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, judged
from securetm.auditing.parts.reconstruction_scores import WORDS as NAMED
from securetm.auditing.views import REQUEST, TOTAL, VOCABULARY, AdversaryView, NotTestable, ReadVector, totals
from securetm.contracts import Answer
from securetm.data_classes import dataclass
from securetm.federation.questions import FREQUENCIES, JOINT, TRAIN, WORDS
from securetm.federation.wire import wire
from securetm.models.questions.word_sketch import SketchTooSmall
from securetm.models.questions.word_sketch import words_in as words_of_sketch

FREQUENT = "words whose number of documents at the party is told exactly"
ASKED_TWICE = "rounds of training that were asked of both cohorts"
_REBUILT = {**DOCUMENTS, **NAMED}


@dataclass(frozen=True)
class PartyDifference:
    """What two runs show of the party that took part in only one of them."""

    party: str
    guesses: tuple[RoundReconstruction, ...]  # from rounds of training with the same state in both runs
    rounds: int  # of training, in the first run
    documents_with: Counter[str]  # how many documents have each word; empty where only one cohort was asked for words


def attack(view: AdversaryView, effort: Effort) -> PartyDifference:
    other = view.again or view
    between = sorted(set(view.public.members) ^ set(other.public.members))
    if len(between) != 1:
        differ = ", ".join(between) or "none"
        raise NotTestable(f"the two runs differ in {differ}, and this attack needs runs that differ in exactly one party")
    (party,) = between
    here, there = list(totals(view)), list(totals(other))
    trained = [one for one in gradients(here) if one.round.question == TRAIN]
    pairs = [(one, rest) for one in trained for rest in there if _same(one, rest)][: effort["rounds"]]
    differences = [apart(one, rest, len(view.public.members), party) for one, rest in pairs]
    held, held_by_rest = _document_frequencies(here, view), _document_frequencies(there, other)
    words = held - held_by_rest if held is not None and held_by_rest is not None else Counter[str]()
    return PartyDifference(party, tuple(invert_gradient(one, view.public.model) for one in differences), len(trained), words)


def _same(one: ReadVector, other: ReadVector) -> bool:
    """Whether two answers are to the same question about the same state, over the same batches: all that is public."""
    if (one.round.question, one.round.number) != (other.round.question, other.round.number):
        return False
    state, rest = one.round.state, other.round.state
    alike = state.keys() == rest.keys() and all(np.array_equal(state[name], rest[name]) for name in state)
    return alike and one.blocks[GRADIENT].shape == other.blocks[GRADIENT].shape


def _document_frequencies(vectors: list[ReadVector], view: AdversaryView) -> Counter[str] | None:
    """How many documents of a cohort have each word, by the question about a list of words or the table of all words."""
    for one in vectors:
        if one.round.question == FREQUENCIES:
            numbers = one.blocks["frequencies"]
            bodies = (wire.unpack_request(message.content)[1] for message in view.messages(REQUEST))
            lists = (body.words.decode().split("\n") for body in bodies if isinstance(body, wire.Adopt))
            listed = next((words for words in lists if len(words) == len(numbers)), [])  # sent before the question
            return Counter(dict(zip(listed, numbers.tolist(), strict=False)))
        if one.round.question == JOINT:
            if one.blocks["cells"].ndim != 2:  # a sum of words behind noise holds no frequencies
                return None
            try:
                words, _, held = words_of_sketch(Answer(one.blocks))
            except SketchTooSmall:  # it is no table
                return None
            return Counter(dict(zip(words, held.tolist(), strict=True)))
    return None


def judge(guess: PartyDifference, truth: GroundTruth) -> Score:
    # over the words of the list that the party uses, in all its documents, those held out as well
    real = np.asarray((truth.all_of(guess.party) > 0).sum(axis=0)).ravel()
    used = [(word, int(number)) for word, number in zip(truth.vocabulary, real, strict=True) if number]
    frequent = Proportion(sum(guess.documents_with[word] == number for word, number in used), len(used))
    asked_twice = Proportion(len(guess.guesses), guess.rounds)
    return judged(guess.guesses, truth, _REBUILT, {FREQUENT: frequent, ASKED_TWICE: asked_twice})


ATTACK = Attack(
    name="differencing",
    title="One party's documents from two sums that differ in this party alone",
    citation="Denning, Denning and Schwartz 1979 (The tracker); So et al. 2021 (arXiv 2106.03328), on sums of many rounds",
    cost="well under a second on one core for each round that both runs began with the same state",
    given="the totals of two runs, the second without one party; the model's settings and words, how many documents a sum has",
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=("prodlda",),
    measures={**_REBUILT, FREQUENT: "word", ASKED_TWICE: "round"},
    bears_on=("singling out", "inference"),
    attack=attack,
    judge=judge,
    questions=(TRAIN, JOINT, WORDS, FREQUENCIES),  # the list that frequencies are about is sent after that for words
    limits=(
        "rounds whose states differ between the two runs, which is all but the first",
        "runs that begin with different seeds or different words, whose first states differ already",
        "noise, and coins that choose other documents in each run: what the two sums share is then not known",
        "runs that differ in more than one party",
    ),
    remark="Two sums over cohorts that differ in one party give that party's answer; the protocol lists this under what it "
    "does not provide. A party answers a question about its corpus only once from one store, but a new run has a new store. "
    "Against repeated questions about a model only noise helps.",
)
