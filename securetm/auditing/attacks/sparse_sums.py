"""One party's own numbers in a sum over all parties: where only one party adds anything, the sum is what it added.

It attacks no mask. It learns from the rounds of the vocabulary which words only one party has, and reads their places in the
sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from securetm.auditing.adversary_view import VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Example
from securetm.auditing.parts.closed_form import estimated_counts, words_in
from securetm.auditing.parts.prodlda_layers import GRADIENT, layers_of
from securetm.auditing.parts.word_tables import owners
from securetm.auditing.reading import BY_PARTIES, REQUEST, TOTAL, ReadVector, totals
from securetm.contracts import Array
from securetm.federation.questions import JOINT, TRAIN, WORDS

COUNTS = "counts"
EXACT = "counts of a word that one party alone used in a round, told exactly"
WHOSE = "counts of a word that one party alone used in a round, told exactly and with the party"
ONE = "numbers of the sum said to be one party's that are"
_EXAMPLES = 10


@dataclass(frozen=True)
class SoleContributions:
    """The words in one sum that only one party has: how often it used each, and which party that is, if it is known."""

    serial: int
    words: Array
    times: Array
    parties: tuple[str, ...]


def attack(view: AdversaryView, effort: Effort) -> tuple[SoleContributions, ...]:
    """Reads the sums of the training and of the vocabulary."""
    known, vocabulary, found = owners(view), view.vocabulary(), list[SoleContributions]()
    for vector in [one for one in totals(view) if one.round.question == TRAIN][: effort["rounds"]]:
        times = _times(vector, view)
        words = np.array([n for n, word in enumerate(vocabulary) if word in known and times[n] > 0], dtype=np.int64)
        parties = tuple(known[vocabulary[n]] for n in words)
        found.append(SoleContributions(vector.round.serial, words, times[words], parties))
    return tuple(found)


def _times(vector: ReadVector, view: AdversaryView) -> Array:
    """How often each word was used: counts as they are, or an estimate from a gradient."""
    if COUNTS in vector.blocks:
        times: Array = np.rint(np.asarray(vector.blocks[COUNTS], dtype=np.float64).sum(axis=0)).astype(np.int64)
        return times
    times = np.zeros(len(view.vocabulary()), dtype=np.int64)
    if GRADIENT in vector.blocks:
        layers = layers_of(vector, view.public.model)
        occur = words_in(layers)
        times[occur] = np.maximum(np.rint(estimated_counts(layers)[occur]), 1).astype(np.int64)
    return times


def judge(found: tuple[SoleContributions, ...], truth: GroundTruth) -> Score:
    """Scores the words that exactly one party used in a round, if that party is honest."""
    known = [one for one in found if all((one.serial, name) in truth.batches for name in truth.held)]  # no secret coins
    exact, whose, right, there, attributed = np.sum([_compared(one, truth) for one in known] or [[0] * 5], axis=0).tolist()
    measures = {EXACT: Proportion(exact, there), WHOSE: Proportion(whose, there), ONE: Proportion(right, attributed)}
    return Score(measures, tuple(_examples([one for one in found[:2] if one in known], truth)))


def _compared(one: SoleContributions, truth: GroundTruth) -> list[int]:
    """Five counts for one round.

    Counts that are exact; of these, counts with the right party; words that were rightly attributed to one party; all words of
    one party; all words that were attributed to one party.
    """
    table = np.array([_used(truth, one.serial, name) for name in truth.held])
    alone = (table > 0).sum(axis=0) == 1
    user = np.array(list(truth.held), dtype=object)[table.argmax(axis=0)]
    alone &= ~np.isin(user, truth.helpers)
    right = alone[one.words]
    exact = right & (table.sum(axis=0)[one.words] == one.times)
    named = user[one.words] == np.array(one.parties, dtype=object)
    return [int(exact.sum()), int((exact & named).sum()), int(right.sum()), int(alone.sum()), len(one.words)]


def _used(truth: GroundTruth, serial: int, party: str) -> Array:
    return np.asarray(truth.batch(serial, party).sum(axis=0), dtype=np.int64)


def _examples(found: list[SoleContributions], truth: GroundTruth) -> Iterator[Example]:
    """The most used of these words, beside the parties' real counts of them."""
    for one in found:
        if len(one.words):
            table = {name: _used(truth, one.serial, name) for name in truth.held}
            real, guess = list[str](), list[str]()
            for place in np.argsort(-one.times, kind="stable")[:_EXAMPLES]:
                word = one.words[place]
                used = ", ".join(f"{name} ×{counts[word]}" for name, counts in table.items() if counts[word])
                real.append(f"{truth.vocabulary[word]}: {used}")
                guess.append(f"{truth.vocabulary[word]}: {one.parties[place] or 'one party'} ×{one.times[place]}")
            yield Example("; ".join(real), "; ".join(guess), real == guess)


ATTACK = Attack(
    name="sparse_sums",
    title="One party's own counts at places of the sum that no other party touches",
    citation="Suimon, Koizumi, Takemasa and Hasegawa 2025 (arXiv 2508.04285), on sums to which one client alone adds",
    cost="a second for a sum; the knowledge of whose words are whose costs as vocabulary_leakage",
    given="the words; how many or which parties have each, from the rounds of the vocabulary; what colluding parties have",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=BY_PARTIES,
    models=("lda", "prodlda", "sentence-lda"),
    measures={EXACT: "word of one party in a round", WHOSE: "word of one party in a round", ONE: "word in a round"},
    attack=attack,
    judge=judge,
    questions=(WORDS, JOINT, TRAIN),
    limits=(
        "words that several parties have, and that only one used in a round: it cannot know that",
        "the documents behind a gradient, which sum_inversion looks for; of a gradient it estimates how often a word was used",
        "runs with a public list of words, which does not show who uses which: it reads nothing unless all others collude",
    ),
    remark="A secure sum hides who added what among several parties that add something. Where only one party adds, the sum is "
    "exactly its number, and only its name is hidden. An adversary who knows who uses the word knows the name as well.",
)
