"""Words of one document or sentence from how counts change between rounds, even in sums over all parties.

Every round draws the topics of the same words again. A word that occurs once is in one cell of the table, and words whose cells
change together belong together. The attack needs no party's own answer; where answers are sent in the open it reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, Proportion, Score, stacked
from securetm.auditing.illustrations import Example
from securetm.auditing.parts.co_movement import (
    BY_SENTENCE,
    BY_TOKEN,
    companions,
    companions_behind_noise,
    link_scores,
    lone_words,
    maybe_lone_words,
    mutual_companions,
    same_topics,
    topic_probabilities,
    topics_of,
)
from securetm.auditing.parts.reconstruction_scores import first_words
from securetm.auditing.reading import ANSWER, TOTAL, party_vectors, totals
from securetm.contracts import Array

COUNTS = "counts"
DOCUMENT, SENTENCE = "document", "sentence"
SENTENCES = ("sentence-lda",)
_EXAMPLES, _MOST_WORDS = 6, 24


def companion(of: str) -> str:
    """The measure of how many rare words' likeliest companions are in the same document, or sentence."""
    return f"rare words whose likeliest companion is of the same {of}"


def linked(of: str) -> str:
    """The measure of how many linked pairs are in one document, or sentence."""
    return f"linked pairs of rare words that are of one {of}"


def links_found(of: str) -> str:
    """The measure of how many pairs of one document, or sentence, are linked."""
    return f"pairs of rare words of one {of} that are linked"


@dataclass(frozen=True)
class WordGroups:
    """The guess about the documents of one party, or of all (party ""): words followed, their companions, and groups."""

    party: str
    words: Array  # the words that were followed; only these are scored
    companions: Array  # of each followed word another one, by its number in the vocabulary
    groups: tuple[Array, ...]
    of: str = DOCUMENT  # what a group is guessed to be: a document or a sentence


def attack(view: AdversaryView, effort: Effort) -> tuple[WordGroups, ...]:
    """Compares the counts of the same documents in several rounds."""
    by_sentence = view.public.plan.model.name in SENTENCES
    return tuple(_groups(party, tables, by_sentence, effort["words"]) for party, tables in _tables(view).items())


def _tables(view: AdversaryView) -> Mapping[str, Array]:
    """The tables of all rounds: each party's where they are sent in the open, else the sums'."""
    by_party: dict[str, list[Array]] = {}
    for one in party_vectors(view) if view.seen.get(ANSWER) else totals(view):
        if COUNTS in one.blocks:
            by_party.setdefault(one.party, []).append(one.blocks[COUNTS])
    return {party: np.array(tables, dtype=np.float64) for party, tables in by_party.items()}


def _groups(party: str, tables: Array, by_sentence: bool, most: int) -> WordGroups:
    lone, of = lone_words(tables), SENTENCE if by_sentence else DOCUMENT
    if len(lone) < 2 or (tables < 0).any():  # behind noise no word is certainly rare
        words = maybe_lone_words(tables, most)
        words = words if len(words) > 1 else words[:0]  # one alone has no companion
        return WordGroups(party, words, words[companions_behind_noise(tables, words)], (), of)
    words = np.sort(np.random.default_rng(0).permutation(lone)[:most])
    topics = topics_of(tables, words)
    probabilities = topic_probabilities(tables, topics)
    scores = link_scores(topics, probabilities, BY_SENTENCE if by_sentence else BY_TOKEN)
    found = same_topics(topics, probabilities) if by_sentence else mutual_companions(scores)
    return WordGroups(party, words, words[companions(scores)], tuple(words[group] for group in found), of)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(guesses: tuple[WordGroups, ...], truth: GroundTruth) -> Score:
    """Looks up in which document, and in which sentence, each word is that occurs once."""
    measures: dict[str, Proportion | Estimate] = {}
    for of in (DOCUMENT, SENTENCE):
        each = [_right(one, of, _lone_rows(rows)) for one in guesses if (rows := _rows(one.party, of, truth)) is not None]
        for name in (companion(of), linked(of), links_found(of)):
            measures[name] = Proportion.over(found[name] for found in each)
    examples = [example for one in guesses for example in _examples(one, truth)]
    return Score(measures, tuple(examples[:_EXAMPLES]))


def _right(guess: WordGroups, of: str, home: Array) -> Mapping[str, tuple[int, int]]:
    """Hits and trials by measure, over the rare words that were followed beside another word of their document."""
    where = home[guess.words]
    mates = np.bincount(where[where >= 0])
    right = (where >= 0) & (where == home[guess.companions])
    pairs = [_pairs(group, home) for group in guess.groups]
    good = sum(same for same, _ in pairs)
    return {
        companion(of): (int(right.sum()), int(mates[mates > 1].sum())),
        linked(of): (good, sum(n for _, n in pairs)),
        links_found(of): (good, int((mates * (mates - 1)).sum()) // 2),
    }


def _rows(party: str, of: str, truth: GroundTruth) -> Any:
    """The documents or sentences of a party, or of all; None where sentences are not known."""
    held = truth.sentences if of == SENTENCE else truth.held
    if party:
        return held.get(party)
    return stacked(held.values()) if held else None


def _lone_rows(rows: Any) -> Array:
    """The row, a document or a sentence, of each word that occurs once in all of them; -1 for the others."""
    columns = sparse.csc_array(rows)
    once = np.flatnonzero(np.asarray(columns.sum(axis=0)).ravel() == 1)
    home = np.full(rows.shape[1], -1, dtype=np.int64)
    there = sparse.coo_array(columns[:, once])
    held = there.data > 0
    home[once[there.col[held]]] = there.row[held]
    return home


def _pairs(group: Array, home: Array) -> tuple[int, int]:
    """How many pairs of a group are of one document, and how many pairs there are."""
    _, sizes = np.unique(home[group][home[group] >= 0], return_counts=True)
    return int((sizes * (sizes - 1)).sum()) // 2, len(group) * (len(group) - 1) // 2


def _examples(guess: WordGroups, truth: GroundTruth) -> Iterator[Example]:
    """The largest groups, each beside the rare words of the document or sentence of its first word."""
    rows = _rows(guess.party, guess.of, truth) if guess.groups else None
    if rows is None:
        return
    home = _lone_rows(rows)
    for group in sorted(guess.groups, key=len, reverse=True)[:2]:
        there = home[group[0]]
        own = np.flatnonzero(home == there) if there >= 0 else np.zeros(0, dtype=np.int64)
        real, guessed = (first_words([truth.vocabulary[word] for word in words], _MOST_WORDS) for words in (own, group))
        yield Example(real, guessed, bool(np.array_equal(own, np.sort(group))))


ATTACK = Attack(
    name="rare_documents",
    title="Words of one document from how counts move between rounds",
    citation="our own, after traffic analysis by co-movement: Dwork et al. 2010 (continual observation), on why sums that are "
    "published again and again over the same data show more than each alone",
    cost="seconds on one core for three thousand rare words and forty rounds",
    given="the words, and the model's settings",
    either=(ANSWER, TOTAL),
    models=("lda", "sentence-lda"),
    measures={
        **{companion(of): "word that occurs once" for of in (DOCUMENT, SENTENCE)},
        **{linked(of): "linked pair of words" for of in (DOCUMENT, SENTENCE)},
        **{links_found(of): f"pair of words of one {of}" for of in (DOCUMENT, SENTENCE)},
    },
    attack=attack,
    judge=judge,
    efforts=("words",),
    limits=(
        "words that occur more often: where the agreed words are those that five documents have, hardly any occurs once",
        "words beyond as many as it may follow: its figures are of those that it follows; behind noise it does not know which "
        "of these occur once",
        "which groups are sentences of one document",
    ),
    remark="A sum over all parties' documents counts the same words in every round. Only their topics change, document by "
    "document or sentence by sentence. The sum itself shows that, so no secure sum hides it.",
)
