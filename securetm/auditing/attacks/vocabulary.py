"""What agreeing on a list of words shows: who has a word, which stand in one document alone, and whose numbers a sum holds.

Lists and tables of words are sent before the training. Nothing sealed is opened: a masked table is read like any other, and
random numbers give no word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.auditing.attack import EVERY_MODEL, Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.auditing.parts.gradients import GRADIENT, estimated_counts, layers_of
from securetm.auditing.parts.gradients import words_in as words_in_gradient
from securetm.auditing.record import Example
from securetm.auditing.views import BY_PARTIES, REQUEST, TOTAL, VOCABULARY, AdversaryView, ReadVector, party_vectors, totals
from securetm.contracts import Answer, Array, Budget
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.data_classes import dataclass, field
from securetm.federation.questions import JOINT, TRAIN, WORDS
from securetm.models.questions.word_sketch import SketchTooSmall, WordSketch, fits, packed, words_in
from securetm.models.questions.word_sums import OPEN, bits_of, open_among, standing_out
from securetm.models.questions.words import BadWordList, merge_words

# ---- the words that parties named, and which party has each ---------------------------------------------------------

UNKNOWN_PARTY = ""  # the party is not known
_CELLS, _LIST = "cells", "words"
_FREQUENCY = 1  # the column of a table's cells that sums how many documents hold their words


@dataclass(frozen=True)
class DecodedWords:
    """The words in a table: how many documents have each, and how many parties."""

    words: tuple[str, ...]
    documents: Array
    parties: Array


def owners(view: AdversaryView) -> Mapping[str, str]:
    """The words that exactly one party has, and that party, if it is known. Words of colluding parties are left out."""
    lists = {name: words for name, words in own_lists(view) if words}
    table = summed(view)
    held = Counter(word for words in lists.values() for word in words)
    known = {word: name for name, words in lists.items() for word in words if held[word] == 1}
    counted = zip(table.words, table.parties, strict=True) if table is not None else ()
    of_one = {word: UNKNOWN_PARTY for word, parties in counted if parties == 1} | known
    helped = frozenset().union(*(words_of(one.documents, view.vocabulary()) for one in view.insiders))
    honest = [name for name in view.public.members if name not in view.helpers]
    only = honest[0] if len(honest) == 1 else UNKNOWN_PARTY
    return {word: name or only for word, name in of_one.items() if word not in helped and name not in view.helpers}


def own_lists(view: AdversaryView) -> Iterator[tuple[str, frozenset[str]]]:
    """Each party's words by its own message: a list, or a table that nothing hides."""
    if not any(view.seen.get(channel) for channel in BY_PARTIES):
        return
    for vector in party_vectors(view):
        if vector.round.question == WORDS:
            try:
                named = merge_words(Answer(None, {"": {_LIST: vector.blocks[_LIST]}}))
            except BadWordList:  # a sealed message is no list, and names nothing
                named = ()
            yield vector.party, frozenset(named)
        elif vector.round.question == JOINT:
            found = _decoded(vector, view, parties=1)
            yield vector.party, frozenset(found.words if found is not None else ())


def summed(view: AdversaryView) -> DecodedWords | None:
    """The words in the sum of all parties' tables."""
    opened = [vector for vector in (totals(view) if TOTAL in view.seen else ()) if vector.round.question == JOINT]
    return _decoded(opened[0], view, len(view.public.members)) if opened else None


def words_of(documents: Any, vocabulary: tuple[str, ...]) -> frozenset[str]:
    there = np.flatnonzero(np.asarray(documents.counts.sum(axis=0)).ravel())
    return frozenset(vocabulary[word] for word in there)


def _decoded(vector: ReadVector, view: AdversaryView, parties: int) -> DecodedWords | None:
    """The words in a table of one party or in the sum of several tables; None where it cannot be decoded.

    The table shows how many parties added a word, which the protocol's decoder does not need. To find that number, the attack
    subtracts every word once and decodes the rest, which has the words of two or more parties, and so on.
    """
    if _CELLS not in vector.blocks or vector.blocks[_CELLS].ndim != 2:  # sums of words behind noise are no table
        return None
    blocks = {name: np.rint(np.asarray(block)).astype(np.int64) for name, block in vector.blocks.items()}
    most_words = view.public.plan.vocabulary.most_candidates
    try:
        words, _, documents = words_in(Answer(blocks))
    except SketchTooSmall:
        return None
    times, left = np.ones(len(words), dtype=np.int64), np.array(blocks[_CELLS], dtype=np.int64)
    left[:, _FREQUENCY] = 0
    place, still = {word: n for n, word in enumerate(words)}, words
    for _ in range(parties - 1):
        left = left - _once(still, most_words)
        still = words_in(Answer({**blocks, _CELLS: left}))[0]
        times[[place[word] for word in still]] += 1
    return DecodedWords(words, documents, times)


def _once(words: tuple[str, ...], most_words: int) -> Array:
    """The cells of the table of one party that has these words, without their frequencies."""
    sketch = WordSketch(most_words)
    clipped_sum = ClippedRowSum(sketch.terms)
    each_once = sparse.csr_array(np.ones((1, len(words)), dtype=np.int64))
    document: Any = Corpus(HeldDocuments(each_once, words, np.zeros(1, dtype=np.uint64)))
    sketch.answer(document, clipped_sum, {}, np.random.default_rng(0))
    cells = np.array(clipped_sum.blocks()[_CELLS], dtype=np.int64)
    cells[:, _FREQUENCY] = 0
    return cells


# ---- which words each party has, and which documents a single word identifies ---------------------------------------

WHOSE = "words of one party alone that are told, with the party"
HELD, RIGHT = "words of a party that are said to be its", "words said to be a party's that are"
GIVEN_AWAY = "documents given away by a word that no other has"


@dataclass(frozen=True)
class InferredWords:
    """The words that each party certainly has, and all words that the adversary saw."""

    words_of: Mapping[str, frozenset[str]]
    shown: frozenset[str] = field(default_factory=frozenset)


def name_words(view: AdversaryView, effort: Effort) -> InferredWords:
    """Collects each party's own list where it is readable, and the words that the sum proves each party to have."""
    own, table, of_all = dict(own_lists(view)), summed(view), frozenset[str]()
    if table is not None:  # every honest party has a word that as many have as are honest, without the helpers that have it
        helpers = [words_of(one.documents, view.vocabulary()) for one in view.insiders]
        known = np.array([sum(word in words for words in helpers) for word in table.words], dtype=np.int64)
        honest = len(view.public.members) - len(view.helpers)
        of_all = frozenset(np.array(table.words, dtype=object)[table.parties - known >= honest])
    sure = {name: frozenset[str]() if name in view.helpers else of_all for name in view.public.members}
    shown = frozenset().union(*own.values(), table.words if table is not None else ())
    return InferredWords({name: own.get(name, frozenset()) | words for name, words in sure.items()}, shown)


def judge_words(inferred: InferredWords, truth: GroundTruth) -> Score:
    """Scores the words of the agreed list. The judge does not know which other words there were."""
    documents = {name: truth.all_of(name) for name in truth.held}
    holds = {name: np.asarray((rows > 0).sum(axis=0)).ravel() > 0 for name, rows in documents.items()}
    guessed = {name: _among(truth.vocabulary, inferred.words_of.get(name, frozenset())) for name in holds}
    one_has, one_guessed = (np.sum(list(of.values()), axis=0) == 1 for of in (holds, guessed))  # words of exactly one party
    honest = truth.honest(documents)
    pairs = [(guessed[name], holds[name]) for name in honest]
    # the honest parties' documents that have a word which was shown and which is in no other document
    shown = _among(truth.vocabulary, inferred.shown)
    telling = shown & (sum(np.asarray((rows > 0).sum(axis=0)).ravel() for rows in documents.values()) == 1)
    given = [np.asarray(sparse.csr_array(rows)[:, np.flatnonzero(telling)].sum(axis=1)) > 0 for rows in honest.values()]
    measures = {
        WHOSE: Proportion.recall((guess & one_guessed, there & one_has) for guess, there in pairs),
        HELD: Proportion.recall(pairs),
        RIGHT: Proportion.precision(pairs),
        GIVEN_AWAY: Proportion.over((int(one.sum()), len(one)) for one in given),
    }
    # for two parties: words that it alone has, and those of them that the attack attributes to it
    alone, examples = {name: words for name in honest if (words := holds[name] & one_has).any()}, []
    for name, words in list(alone.items())[:2]:
        own = [truth.vocabulary[word] for word in np.flatnonzero(words)[:10]]  # in an example
        named = [word for word in own if word in inferred.words_of.get(name, ())]
        examples.append(Example(f"{name}: {', '.join(own)}", ", ".join(named), own == named))
    return Score(measures, tuple(examples))


def _among(vocabulary: tuple[str, ...], words: frozenset[str]) -> Array:
    return np.fromiter((word in words for word in vocabulary), dtype=bool, count=len(vocabulary))


def allowed_of_words(measure: str, claimed: Budget) -> float:
    """Bounds how often a word is shown that only one document has.

    Without its document such a word is never named, so by (epsilon, delta) it is named with probability at most delta.
    Protection of a smaller unit gives no such bound: the word may occur in its document more than once.
    """
    return claimed.delta if measure == GIVEN_AWAY and claimed.unit.whole_documents else 1.0


VOCABULARY_LEAKAGE = Attack(
    name="vocabulary_leakage",
    title="A party's own words from how the list of words was agreed on",
    citation="lists that are united in the open: Calvo-Bartolomé and Arenas-García 2022 (gFedNTM); tables that a sum opens: "
    "Goodrich and Mitzenmacher 2011; what publishing rare words gives away: Korolova et al. 2009",
    cost="a second for a table of a hundred thousand words",
    given="nothing but the messages; colluding parties subtract their own words from the sum",
    either=(*BY_PARTIES, TOTAL),
    models=EVERY_MODEL,
    measures={
        WHOSE: "word that one party alone has",
        HELD: "word of a party",
        RIGHT: "word said to be a party's",
        GIVEN_AWAY: "document",
    },
    bears_on=("inference",),
    attack=name_words,
    judge=judge_words,
    questions=(WORDS, JOINT),
    allowed=allowed_of_words,
    limits=(
        "guesses: it reports only what is certain; guessing any of n parties for a word of one party is right once in n times",
        "texts of its own: it does not ask which party is likely to use such a word",
        "a colluding party's held-out documents: it does not subtract words that occur only in these from the sum",
        "words that were named and then left out of the agreed list, which are not judged",
    ),
    remark="A union computed through a sum hides which party has a word. It shows that a party has the word, how many parties "
    "have it, and how many documents. So the coordinator still sees a name or a code that only one document has, unless the "
    "parties name only words that enough documents use, counted with noise (word_selection).",
)


# ---- words of one document alone ------------------------------------------------------------------------------------
# A list or a table of all words names such a word outright. A noised sum of words names none; there the attack looks up each
# word that it is asked about, after it has taken away all words of several documents, which it knows.

TOLD, TOLD_RIGHT = "words of one document alone that are told", "words said to be in a document that are"
SURE = 4.75  # deviations: noise alone passes them once in a million times
FALSE_ALARMS = 1.02e-6  # of a word that is not there


@dataclass(frozen=True)
class AskedWords:
    """Words, of which half stand in one document, and the words of several documents, which the attacker knows."""

    words: tuple[str, ...]
    common: tuple[str, ...]


def ask_words(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
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


def tell_words(view: AdversaryView, effort: Effort) -> Array:
    asked: AskedWords = view.question
    table = summed(view)
    named = frozenset[str]().union(*(words for _, words in own_lists(view)), table.words if table is not None else ())
    listed = np.array([word in named for word in asked.words], dtype=bool)
    read = totals(view) if TOTAL in view.seen else party_vectors(view)  # behind noise: of all parties, or of each
    sums = [one for one in read if one.round.question == JOINT and one.blocks["cells"].ndim == 1]
    return listed | surely_there(asked, sums) if sums else listed


def surely_there(asked: AskedWords, sums: list[ReadVector]) -> Array:
    """Which words stand out of the noise, over all sums in which each was open."""
    words = (*asked.common, *asked.words)
    limbs, place = packed(words), len(asked.common)
    score, heard = np.zeros(len(asked.words)), np.zeros(len(asked.words))
    for one in sums:
        state = one.round.state
        there = open_among(state[OPEN], bits_of(limbs)) if state else np.ones(len(words), dtype=bool)
        found = standing_out(np.asarray(one.blocks["cells"], dtype=np.float64), limbs, there[:place])[place:]
        score += found * there[place:]
        heard += there[place:]
    return np.asarray(score / np.sqrt(np.maximum(heard, 1)) > SURE)


def judge_told(
    said: Array,
    truth: GroundTruth,
    measures: tuple[str, str] = (TOLD, TOLD_RIGHT),
    spoken: tuple[str, str] = ("in none", "in one document"),
    shown: int = 4,
) -> Score:
    there = np.asarray(truth.answer, dtype=bool)
    scores = Proportion.recall([(said, there)]), Proportion.precision([(said, there)])
    pairs = list(zip(there.tolist(), said.tolist(), strict=True))[:shown]
    examples = tuple(Example(spoken[real], spoken[told], real == told) for real, told in pairs)
    return Score(dict(zip(measures, scores, strict=True)), examples)


def allowed_of_told(measure: str, claimed: Budget) -> float:
    """Without its document a word is told when noise passes the limit; with it at most e^epsilon times as often, and delta."""
    if measure != TOLD or not claimed.unit.whole_documents:
        return 1.0
    return float(min(1.0, np.exp(claimed.epsilon) * FALSE_ALARMS + claimed.delta))


RARE_WORDS = Attack(
    name="rare_words",
    title="Words of one document alone from how the list of words was agreed on",
    citation="what publishing rare words gives away: Korolova et al. 2009; noised sums of words: Chen et al. 2025 "
    "(arXiv 2502.08878)",
    cost="seconds on one core for a few hundred words",
    given="the words that it is asked about, half of which are in one document; all words that are in several documents",
    either=(*BY_PARTIES, TOTAL),
    models=EVERY_MODEL,
    measures={TOLD: "word of one document", TOLD_RIGHT: "word said to be in a document"},
    bears_on=("inference",),
    attack=tell_words,
    judge=judge_told,
    efforts=("words",),
    questions=(WORDS, JOINT),
    pose=ask_words,
    allowed=allowed_of_told,
    limits=(
        "a coordinator that lies about which words are open in a sum: such a word's document then puts its whole row there",
        "how heavy words of several documents are: it estimates that from the sum, and takes no document's row away",
        "guesses below its limit, which are right somewhat more often than not",
    ),
    remark="A table that a sum opens names every word that is in a single document. Behind noise such a word weighs at most "
    "what one document weighs, which is what the noise hides.",
)


# ---- one party's own numbers in a sum: where only one party adds anything, the sum is what it added -----------------

COUNTS = "counts"
EXACT = "counts of a word that one party alone used in a round, told exactly"
WHOSE_COUNTS = "counts of a word that one party alone used in a round, told exactly and with the party"
ONE = "numbers of the sum said to be one party's that are"


@dataclass(frozen=True)
class SoleContributions:
    """The words in one sum that only one party has: how often it used each, and which party that is, if it is known."""

    serial: int
    words: Array
    times: Array
    parties: tuple[str, ...]


def read_sums(view: AdversaryView, effort: Effort) -> tuple[SoleContributions, ...]:
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
        occur = words_in_gradient(layers)
        times[occur] = np.maximum(np.rint(estimated_counts(layers)[occur]), 1).astype(np.int64)
    return times


def judge_sums(found: tuple[SoleContributions, ...], truth: GroundTruth) -> Score:
    """Scores the words that exactly one party used in a round, if that party is honest."""
    known = [one for one in found if all((one.serial, name) in truth.batches for name in truth.held)]  # no secret coins
    exact, whose, right, there, attributed = np.sum([_compared(one, truth) for one in known] or [[0] * 5], axis=0).tolist()
    measures = {EXACT: Proportion(exact, there), WHOSE_COUNTS: Proportion(whose, there), ONE: Proportion(right, attributed)}
    examples = []  # the most used of these words, beside the parties' real counts of them
    for one in [one for one in found[:2] if one in known and len(one.words)]:
        table, real, guess = {name: _used(truth, one.serial, name) for name in truth.held}, list[str](), list[str]()
        for place in np.argsort(-one.times, kind="stable")[:10]:
            word = one.words[place]
            used = ", ".join(f"{name} ×{counts[word]}" for name, counts in table.items() if counts[word])
            real.append(f"{truth.vocabulary[word]}: {used}")
            guess.append(f"{truth.vocabulary[word]}: {one.parties[place] or 'one party'} ×{one.times[place]}")
        examples.append(Example("; ".join(real), "; ".join(guess), real == guess))
    return Score(measures, tuple(examples))


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


SPARSE_SUMS = Attack(
    name="sparse_sums",
    title="One party's own counts at places of the sum that no other party touches",
    citation="Suimon, Koizumi, Takemasa and Hasegawa 2025 (arXiv 2508.04285), on sums to which one client alone adds",
    cost="a second for a sum; the knowledge of whose words are whose costs as vocabulary_leakage",
    given="the words; how many or which parties have each, from the rounds of the vocabulary; what colluding parties have",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=BY_PARTIES,
    models=("lda", "prodlda", "sentence-lda"),
    measures={EXACT: "word of one party in a round", WHOSE_COUNTS: "word of one party in a round", ONE: "word in a round"},
    bears_on=("inference",),
    attack=read_sums,
    judge=judge_sums,
    questions=(WORDS, JOINT, TRAIN),
    limits=(
        "words that several parties have, and that only one used in a round: it cannot know that",
        "the documents behind a gradient, which sum_inversion looks for; of a gradient it estimates how often a word was used",
        "runs with a public list of words, which does not show who uses which: it reads nothing unless all others collude",
    ),
    remark="A secure sum hides who added what among several parties that add something. Where only one party adds, the sum is "
    "exactly its number, and only its name is hidden. An adversary who knows who uses the word knows the name as well.",
)
