"""Words of one document from the sums of matrix factorisation or of pairs of words, in a single round and without topics.

A round's sum has a row for each word: the weights of the documents' topics, each times how heavy the word is in that document,
or one number for each other word that stands beside it. A word that one document alone holds has that document's weights, or
words, as its row, up to a factor. So the rows of all words that only this document holds are parallel. The attack needs no
party's own answer; where answers are sent in the open it reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.attacks.rare_documents import DOCUMENT, EXAMPLES, WordGroups, lone_rows, of_groups, rows_of, scored_links
from securetm.auditing.parts.gradients import directions, parallel
from securetm.auditing.views import ANSWER, TOTAL, AdversaryView, heard
from securetm.contracts import Array
from securetm.federation.questions import PAIRS as PAIRS_OF_WORDS

ROWS, PAIRS = "words", "pairs"  # the block of the sum that has a column for each word, or a number for each two words
COMPANIONS = "words of one document alone whose nearest row is of the same document"
LINKED = "linked pairs of words that one document alone holds"
FOUND = "pairs of words that one document alone holds that are linked"
_ROUNDING = 3e-7  # of a number in 32 bits, and of the sums that led to it


def attack(view: AdversaryView, effort: Effort) -> tuple[WordGroups, ...]:
    """Compares the rows of the words, over all rounds: what is parallel in one round is so in all, by the same factor."""
    found = []
    for party, rounds in heard(view, ROWS, PAIRS).items():
        rows = np.concatenate([_rows_of(one.blocks) for one in rounds], axis=1)
        there = np.flatnonzero((rows != 0).any(axis=1))
        words = np.sort(np.random.default_rng(0).permutation(there)[: effort["words"]])
        if len(words) < 2:
            found.append(WordGroups(party, words[:0], words[:0], ()))
            continue
        rows = rows[words]
        step = max(one.round.terms.grid for one in rounds)
        unsure = 3.0 * (_ROUNDING + step * np.sqrt(rows.shape[1] / 12.0) / np.linalg.norm(rows, axis=1))
        groups = parallel(rows, np.where(unsure < 0.1, unsure, np.inf))
        towards = directions(rows)
        cosines = towards @ towards.T
        np.fill_diagonal(cosines, -np.inf)
        found.append(WordGroups(party, words, words[cosines.argmax(axis=1)], tuple(words[group] for group in groups)))
    return tuple(found)


def _rows_of(blocks: Mapping[str, Array]) -> Array:
    """The row of each word. In pairs a word has no number with itself: it gets its largest one, which makes rows parallel."""
    if ROWS in blocks:
        return np.asarray(blocks[ROWS], dtype=np.float64).T
    flat = np.asarray(blocks[PAIRS], dtype=np.float64).ravel()
    words = int(np.sqrt(2 * len(flat)))
    half = np.zeros((words, words))
    half[np.triu_indices(words)] = flat
    np.fill_diagonal(half, 0.0)
    rows: Array = half + half.T
    np.fill_diagonal(rows, rows.max(axis=1, initial=0.0))
    return rows


def judge(guesses: tuple[WordGroups, ...], truth: GroundTruth) -> Score:
    """Looks up which document each word is in that one document alone holds."""
    held = ((one, rows_of(one.party, DOCUMENT, truth)) for one in guesses)
    each = [(one, lone_rows(rows > 0)) for one, rows in held if rows is not None]
    found = [scored_links(one, home, (COMPANIONS, LINKED, FOUND)) for one, home in each]
    measures = {name: Proportion.over(right[name] for right in found) for name in (COMPANIONS, LINKED, FOUND)}
    examples = [example for one, home in each for example in of_groups(one, home, truth.vocabulary)]
    return Score(measures, tuple(examples[:EXAMPLES]))


ATTACK = Attack(
    name="rare_rows",
    title="Words of one document from sums of a matrix factorisation, or of pairs of words",
    citation="our own, after the linked rows of gradients (securetm: sum_inversion); places of a sum to which one alone adds: "
    "Suimon, Koizumi, Takemasa and Hasegawa 2025 (arXiv 2508.04285)",
    cost="seconds on one core for three thousand words",
    given="the words, and the model's settings",
    either=(ANSWER, TOTAL),
    models=("nmf", "moments"),
    measures={COMPANIONS: "word of one document", LINKED: "linked pair of words", FOUND: "pair of words of one document"},
    bears_on=("singling out", "inference"),
    attack=attack,
    judge=judge,
    efforts=("words",),
    limits=(
        "words that several documents hold: where the agreed words are those that five documents have, none is one document's",
        "words beyond as many as it may follow: its figures are of those that it follows",
        "noise: it does not model noise, so behind it it links nothing, and names the nearest row only",
    ),
    remark="The sum over all parties has the row of such a word unchanged, since nobody else adds to it. So no secure sum "
    "hides which rare words stand in one document.",
)

RARE_PAIRS = replace(
    ATTACK,
    name="rare_pairs",
    title="Words of one document from the pairs of words with which a training begins",
    models=EVERY_MODEL,
    questions=(PAIRS_OF_WORDS,),
)
