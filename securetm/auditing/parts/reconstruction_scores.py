"""Scores of reconstructed documents, words and links between words: exactly right or not, by one table of measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, RoundReconstruction, Score
from securetm.auditing.record import Example
from securetm.contracts import Array
from securetm.wording import counted

EXACT, TRUE_GUESSES = "documents recovered exactly", "guessed documents that are real"
PRECISION, RECALL = "named words that occur", "words that are named"
TOGETHER = "documents whose own words are put together"
LINKED, LINKS_FOUND = "pairs of words rightly linked", "links between words that are found"
DOCUMENTS: Mapping[str, str] = {EXACT: "document", TRUE_GUESSES: "guessed document"}
WORDS: Mapping[str, str] = {PRECISION: "word in a round", RECALL: "word in a round"}
LINKS: Mapping[str, str] = {TOGETHER: "document", LINKED: "pair of words", LINKS_FOUND: "pair of words"}
MEASURES: Mapping[str, str] = {**DOCUMENTS, **WORDS, **LINKS}  # with their units
_MOST_WORDS = 12  # of a document in an example
_MOST_EXAMPLES = 6


def judged(
    guesses: Sequence[RoundReconstruction],
    truth: GroundTruth,
    wanted: Collection[str] = MEASURES.keys(),
    more: Mapping[str, Proportion | Estimate] | None = None,
) -> Score:
    """Scores guesses by the wanted measures of the table. `more` are measures that the attack scored itself."""
    documents = judged_documents(guesses, truth)
    words = judged_words(guesses, truth) if WORDS.keys() & wanted else {}
    links = judged_links(guesses, truth) if LINKS.keys() & wanted else {}
    found = {**documents.measures, **words, **links}
    return replace(documents, measures={**{name: found[name] for name in wanted}, **(more or {})})


def judged_documents(guesses: Sequence[RoundReconstruction], truth: GroundTruth) -> Score:
    """How many of the real documents were guessed exactly, and how many guesses were right."""
    hits, guessed, there, examples = 0, 0, 0, list[Example]()
    for guess in guesses:
        held = truth.batch(guess.serial, guess.party)
        # a document that is there twice must be guessed twice
        right = sum((Counter(map(_key, held)) & Counter(map(_key, guess.documents))).values())
        hits, guessed, there = hits + right, guessed + len(guess.documents), there + len(held)
        examples += [_example(one, guess, truth.vocabulary) for one in held[:2]] if len(examples) < _MOST_EXAMPLES else []
    measures = {EXACT: Proportion(hits, there), TRUE_GUESSES: Proportion(hits, guessed)}
    return Score(measures, tuple(examples[:_MOST_EXAMPLES]))


def judged_words(guesses: Iterable[RoundReconstruction], truth: GroundTruth) -> dict[str, Proportion]:
    masks = list[tuple[Array, Array]]()
    for guess in guesses:
        if guess.words is not None:
            occur = np.any(truth.batch(guess.serial, guess.party), axis=0)
            masks.append((np.isin(np.arange(len(occur)), guess.words), occur))
    return {PRECISION: Proportion.precision(masks), RECALL: Proportion.recall(masks)}


def judged_links(guesses: Iterable[RoundReconstruction], truth: GroundTruth) -> dict[str, Proportion]:
    """Scores groups of words, each a guess at one document's own words: whole documents, and pairs of words.

    A document's own words are those that no other document of the sum has. The document counts as found if a group holds
    exactly its own words, at least two.
    """
    right = named = there = whole = documents = 0
    for guess in guesses:
        held = truth.batch(guess.serial, guess.party)
        alone = (held > 0).sum(axis=0) == 1
        own = [tuple(np.flatnonzero((counts > 0) & alone).tolist()) for counts in held]
        groups = [tuple(np.sort(group).tolist()) for group in guess.groups]
        linked, real = _pairs(groups), _pairs(own)
        right, named, there = right + len(linked & real), named + len(linked), there + len(real)
        whole, documents = whole + sum(len(words) > 1 and words in set(groups) for words in own), documents + len(own)
    return {TOGETHER: Proportion(whole, documents), LINKED: Proportion(right, named), LINKS_FOUND: Proportion(right, there)}


def _pairs(groups: Iterable[tuple[int, ...]]) -> set[tuple[int, int]]:
    return {pair for words in groups for pair in combinations(words, 2)}


def _key(counts: Array) -> bytes:
    return np.ascontiguousarray(counts, dtype=np.int64).tobytes()


def _example(counts: Array, guess: RoundReconstruction, vocabulary: tuple[str, ...]) -> Example:
    """A document beside the nearest guess, or beside the largest group of its words if no guess is right."""
    original = in_words(counts, vocabulary)
    nearest = min(guess.documents, key=lambda document: int(np.abs(document - counts).sum()), default=None)
    if nearest is not None and _key(nearest) == _key(counts):
        return Example(original, original, True)
    linked = max(guess.groups, key=lambda group: int((counts[group] > 0).sum()), default=np.zeros(0, dtype=np.int64))
    if (counts[linked] > 0).sum() > 1:
        return Example(original, f"of one document: {', '.join(vocabulary[word] for word in linked[:_MOST_WORDS])}", False)
    return Example(original, "" if nearest is None else in_words(nearest, vocabulary), False)


def in_words(counts: Array, vocabulary: tuple[str, ...]) -> str:
    """A bag of words as text, the most frequent words first."""
    there = np.flatnonzero(counts > 0)
    order = there[np.argsort(-counts[there], kind="stable")]
    return first_words([vocabulary[word] + (f" ×{counts[word]}" if counts[word] > 1 else "") for word in order], _MOST_WORDS)


def first_words(words: Sequence[str], most: int) -> str:
    """The first words of a list as text, and how many more there are."""
    more = f" … and {counted(len(words) - most, 'word')} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
