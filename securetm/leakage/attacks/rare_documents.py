"""Words of one document or sentence from how counts move between rounds: of sums over whole corpora, which stay the same.

Every round draws the topics of the same words anew. A word that occurs once stands in one cell of the table, and words whose
cells change together belong together. It needs no party's own answer; it reads these where they are sent in the open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.leakage.attack import Attack, Counted, Effort, Example, Judged, Truth
from securetm.leakage.parts.moving_words import (
    BY_SENTENCE,
    BY_TOKEN,
    companions,
    lone_words,
    mutual,
    rarity,
    same_way,
    together,
    ways,
)
from securetm.leakage.reading import ANSWER, REQUEST, TOTAL, Heard, said_by_parties, totals
from securetm.leakage.views import VOCABULARY, View

COUNTS = "counts"
COMPANION = "rare words whose likeliest companion is of the same document"
LINKED, LINKS_FOUND = (
    "linked pairs of rare words that are of one document",
    "pairs of rare words of one document that are linked",
)
SENTENCES = ("sentence-lda",)
_EXAMPLES, _MOST_WORDS = 6, 24


@dataclass(frozen=True)
class Moved:
    """What is said of the documents of one party, or of all (party ""): rare words, each one's companion, and groups."""

    party: str
    words: Array
    companions: Array  # of each, a word's number in the vocabulary
    groups: tuple[Array, ...]


def attack(view: View, effort: Effort) -> tuple[Moved, ...]:
    """Run by whoever sees the same documents' counts in several rounds."""
    by_sentence = view.public.plan.model.name in SENTENCES
    return tuple(_moved(party, tables, by_sentence, effort["words"]) for party, tables in _tables(view).items())


def _tables(view: View) -> Mapping[str, Array]:
    """Each party's table of each round where they are sent in the open, else the sums' own."""
    heard: dict[str, list[Heard]] = {}
    for one in said_by_parties(view) if view.seen.get(ANSWER) else totals(view):
        if COUNTS in one.blocks:
            heard.setdefault(one.party, []).append(one)
    return {
        party: np.array([np.asarray(one.blocks[COUNTS], dtype=np.float64) for one in rounds]) for party, rounds in heard.items()
    }


def _moved(party: str, tables: Array, by_sentence: bool, most: int) -> Moved:
    lone = lone_words(tables)
    words = np.sort(np.random.default_rng(0).permutation(lone)[:most])
    if len(words) < 2:
        return Moved(party, words[:0], words[:0], ())
    way = ways(tables, words)
    likely = rarity(tables, way)
    likeness = together(way, likely, BY_SENTENCE if by_sentence else BY_TOKEN)
    found = same_way(way, likely) if by_sentence else mutual(likeness)
    return Moved(party, words, words[companions(likeness)], tuple(words[group] for group in found))


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(told: tuple[Moved, ...], truth: Truth) -> Judged:
    """Run by the judge, who knows in which document each word stands that occurs once."""
    hits = dict.fromkeys((COMPANION, LINKED, LINKS_FOUND), 0)
    of = dict.fromkeys((COMPANION, LINKED, LINKS_FOUND), 0)
    examples = list[Example]()
    for one in told:
        rows = _rows(one.party, truth)
        home = _home(rows)
        mates = np.bincount(home[home >= 0], minlength=rows.shape[0])
        right = (home[one.words] >= 0) & (home[one.words] == home[one.companions])
        pairs = [_pairs(group, home) for group in one.groups]
        good = sum(same for same, _ in pairs)
        found = {COMPANION: int(right.sum()), LINKED: good, LINKS_FOUND: good}
        there = {
            COMPANION: int(mates[mates > 1].sum()),
            LINKED: sum(n for _, n in pairs),
            LINKS_FOUND: int((mates * (mates - 1)).sum()) // 2,
        }
        hits = {name: hits[name] + found[name] for name in hits}
        of = {name: of[name] + there[name] for name in of}
        examples += _examples(one, home, truth.vocabulary)
    return Judged({name: Counted(hits[name], of[name]) for name in hits}, tuple(examples[:_EXAMPLES]))


def _rows(party: str, truth: Truth) -> Any:
    return truth.held[party] if party else sparse.csr_array(sparse.vstack(list(truth.held.values())))


def _home(rows: Any) -> Array:
    """The document of each word that occurs once in all of them; -1 for the others."""
    columns = sparse.csc_array(rows)
    once = np.flatnonzero(np.asarray(columns.sum(axis=0)).ravel() == 1)
    home = np.full(rows.shape[1], -1, dtype=np.int64)
    there = sparse.coo_array(columns[:, once])
    held = there.data > 0
    home[once[there.col[held]]] = there.row[held]
    return home


def _pairs(group: Array, home: Array) -> tuple[int, int]:
    """Of the pairs in a group, how many are of one document, and how many there are."""
    _, sizes = np.unique(home[group][home[group] >= 0], return_counts=True)
    return int((sizes * (sizes - 1)).sum()) // 2, len(group) * (len(group) - 1) // 2


def _examples(told: Moved, home: Array, vocabulary: tuple[str, ...]) -> Iterator[Example]:
    """The largest groups, each beside the rare words of the document that its first word stands in."""
    for group in sorted(told.groups, key=len, reverse=True)[:2]:
        document = home[group[0]]
        own = np.flatnonzero(home == document) if document >= 0 else np.zeros(0, dtype=np.int64)
        yield Example(_named(own, vocabulary), _named(group, vocabulary), bool(np.array_equal(own, np.sort(group))))


def _named(words: Array, vocabulary: tuple[str, ...]) -> str:
    more = f" … and {len(words) - _MOST_WORDS} words more" if len(words) > _MOST_WORDS else ""
    return ", ".join(vocabulary[word] for word in words[:_MOST_WORDS]) + more


ATTACK = Attack(
    name="rare_documents",
    title="Words of one document from how counts move between rounds",
    citation="our own, after traffic analysis by co-movement: Dwork et al. 2010 (continual observation), on why sums that are "
    "published again and again over the same data tell more than each alone",
    cost="seconds on one core for three thousand rare words and forty rounds",
    given="the words, and the model's settings",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, TOTAL),
    models=("lda", "sentence-lda"),
    measures={COMPANION: "word that occurs once", LINKED: "linked pair of words", LINKS_FOUND: "pair of words of one document"},
    attack=attack,
    judge=judge,
    efforts=("words",),
    limits=(
        "words that occur more often, which it does not follow: where words are agreed on that five documents have, hardly "
        "any occurs once in a sum",
        "noised counts, in which it finds no word that occurs once; what their movements still tell together is not tried",
        "it does not say how the groups of one document's sentences belong together",
    ),
    remark="A sum over all parties' documents is of the same words in every round. What changes are their topics, and do so "
    "document by document, or sentence by sentence: no secure sum hides that, since it is the sum that moves.",
)
