"""Whether a word of one document alone can be told from how parties agreed on their words: from lists, tables or noised sums.

A list or a table of all words names such a word outright. A noised sum of words names none; there the attack looks up each word
that it is asked about, after it has taken away all words of several documents, which it knows. It reads no round of training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import EVERY_MODEL, Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Example
from securetm.auditing.parts.word_tables import own_lists, summed
from securetm.auditing.reading import BY_PARTIES, TOTAL, ReadVector, party_vectors, totals
from securetm.contracts import Array, Budget
from securetm.federation.questions import JOINT, WORDS
from securetm.models.word_search import standing_out
from securetm.models.word_sketch import fits, packed
from securetm.models.word_sums import OPEN, open_among

TOLD, RIGHT = "words of one document alone that are told", "words said to be in a document that are"
SURE = 4.75  # deviations: noise alone passes them once in a million times
FALSE_ALARMS = 1.02e-6  # of a word that is not there
_EXAMPLES = 4


@dataclass(frozen=True)
class AskedWords:
    """Words, of which half stand in one document, and the words of several documents, which the attacker knows."""

    words: tuple[str, ...]
    common: tuple[str, ...]


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about words of one document alone, and about as many that are in none: the same letters in another order."""
    assert truth.every_word is not None
    held = {word: number for word, number in truth.every_word().items() if fits(word)}
    alone = sorted(word for word, number in held.items() if number == 1)
    there = [alone[place] for place in rng.permutation(len(alone))[: effort["words"]]]
    turned = ("".join(rng.permutation(list(word))) for word in there)
    asked = {**{word: False for word in turned if word not in held}, **dict.fromkeys(there, True)}
    order = rng.permutation(len(asked))
    words, present = list(asked), np.array(list(asked.values()), dtype=bool)
    common = tuple(word for word, number in held.items() if number > 1)
    return Challenge(AskedWords(tuple(words[place] for place in order), common), present[order])


def attack(view: AdversaryView, effort: Effort) -> Array:  # noqa: ARG001 - words are agreed on once, whatever the rounds
    """Says which of the words are surely in a document."""
    asked: AskedWords = view.question
    table = summed(view)
    named = frozenset[str]().union(*(words for _, words in own_lists(view)), table.words if table is not None else ())
    listed = np.array([word in named for word in asked.words], dtype=bool)
    sums = list(_noised_sums(view))
    return listed | surely_there(asked, sums) if sums else listed


def _noised_sums(view: AdversaryView) -> Iterator[ReadVector]:
    """Sums of words behind noise: of all parties, or where each party's own is seen, of each."""
    for vector in totals(view) if TOTAL in view.seen else party_vectors(view):
        if vector.round.question == JOINT and vector.blocks["cells"].ndim == 1:
            yield vector


def surely_there(asked: AskedWords, sums: list[ReadVector]) -> Array:
    """Which words stand out of the noise, over all sums in which each was open."""
    words = (*asked.common, *asked.words)
    limbs, place = packed(words), len(asked.common)
    score, heard = np.zeros(len(asked.words)), np.zeros(len(asked.words))
    for one in sums:
        state = one.round.state
        there = open_among(state[OPEN], limbs) if state else np.ones(len(words), dtype=bool)
        found = standing_out(np.asarray(one.blocks["cells"], dtype=np.float64), limbs, there[:place])[place:]
        score += found * there[place:]
        heard += there[place:]
    return np.asarray(score / np.sqrt(np.maximum(heard, 1)) > SURE)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(said: Array, truth: GroundTruth) -> Score:
    """Compares with the words that are there."""
    there = np.asarray(truth.answer, dtype=bool)
    return Score(
        {TOLD: Proportion.recall([(said, there)]), RIGHT: Proportion.precision([(said, there)])}, _examples(said, there)
    )


def _examples(said: Array, there: Array) -> tuple[Example, ...]:
    pairs = list(zip(there, said, strict=True))[:_EXAMPLES]
    spoken = {True: "in one document", False: "in none"}
    return tuple(Example(spoken[bool(real)], spoken[bool(told)], bool(real == told)) for real, told in pairs)


def allowed(measure: str, claimed: Budget) -> float:
    """Without its document a word is told when noise passes the limit; with it at most e^epsilon times as often, and delta."""
    if measure != TOLD or not claimed.unit.whole_documents:
        return 1.0
    return float(min(1.0, np.exp(claimed.epsilon) * FALSE_ALARMS + claimed.delta))


ATTACK = Attack(
    name="rare_words",
    title="Words of one document alone from how the list of words was agreed on",
    citation="what publishing rare words gives away: Korolova et al. 2009; noised sums of words: Chen et al. 2025 "
    "(arXiv 2502.08878)",
    cost="seconds on one core for a few hundred words",
    given="the words that it is asked about, half of which are in one document; all words that are in several documents",
    either=(*BY_PARTIES, TOTAL),
    models=EVERY_MODEL,
    measures={TOLD: "word of one document", RIGHT: "word said to be in a document"},
    attack=attack,
    judge=judge,
    efforts=("words",),
    questions=(WORDS, JOINT),
    pose=pose,
    allowed=allowed,
    limits=(
        "a coordinator that lies about which words are open in a sum: such a word's document then puts its whole row there",
        "how heavy words of several documents are: it estimates that from the sum, and takes no document's row away",
        "guesses below its limit, which are right somewhat more often than not",
    ),
    remark="A table that a sum opens names every word that is in a single document. Behind noise such a word weighs at most "
    "what one document weighs, which is what the noise hides.",
)
