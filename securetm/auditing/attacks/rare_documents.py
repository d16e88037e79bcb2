"""Words of one document or sentence from how counts change between rounds, even in sums over all parties.

Every round draws the topics of the same words again. A word that occurs once is in one cell of the table, and words whose cells
change together belong together. The attack needs no party's own answer; where answers are sent in the open it reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, Proportion, Score, stacked
from securetm.auditing.parts.reconstruction_scores import first_words
from securetm.auditing.record import Example
from securetm.auditing.views import ANSWER, TOTAL, AdversaryView, heard
from securetm.contracts import Array
from securetm.data_classes import dataclass

# ---- words that occur once, followed from round to round ------------------------------------------------------------
# A table of counts shows the topic of such a word. Words of one document have the document's topics; words of one sentence of
# SentenceLDA have the same topic. Other words agree only by chance, and the changes of all words show how likely that is.

_SMOOTH = 2.0  # pseudo-counts of changes, in proportion to the topics' sizes, so none has probability 0
_MARGIN = float(np.log(100))  # only one in a hundred chance agreements passes
BY_TOKEN, BY_SENTENCE = 0.3, 0.95  # how often two words of one document agree: words drawn one by one, and whole sentences
_SCARCE = 1e-9
_DEVIATIONS = 4.0  # of noise: a word's mean count may differ so much from one; chance of more: below 1 in 10,000
_BLOCK = 1000  # words whose similarities are in memory at a time


def lone_words(tables: Array) -> Array:
    """The words that occur exactly once in every round. `tables`: rounds x topics x words."""
    whole = (tables == np.rint(tables)).all(axis=(0, 1)) & (tables >= 0).all(axis=(0, 1))
    return np.flatnonzero(whole & (tables.sum(axis=1) == 1).all(axis=0))


def topics_of(tables: Array, words: Array) -> Array:
    """The topic of each of these words: rounds x words."""
    return np.asarray(tables[:, :, words].argmax(axis=1))


def topic_probabilities(tables: Array, topics: Array) -> Array:
    """The probability of each topic given the previous one: rounds x words."""
    shares = np.maximum(tables.sum(axis=2), 0.0) / np.maximum(tables.sum(axis=(1, 2)), _SCARCE)[:, None]
    probabilities = np.empty(topics.shape)
    probabilities[0] = shares[0, topics[0]]
    for at in range(1, len(topics)):
        seen = np.zeros((tables.shape[1], tables.shape[1]))
        np.add.at(seen, (topics[at - 1], topics[at]), 1.0)
        seen = (seen + _SMOOTH * shares[at]) / (seen.sum(axis=1, keepdims=True) + _SMOOTH)
        probabilities[at] = seen[topics[at - 1], topics[at]]
    return np.maximum(probabilities, _SCARCE)


def link_scores(topics: Array, probabilities: Array, agreement: float) -> Array:
    """The log-likelihood ratio of each pair of words: that their topics are linked, against that they are independent.

    `agreement` is how often linked words have the same topic. A common topic counts more if it was less likely; different
    topics count against the link. No word is linked to itself.
    """
    n = topics.shape[1]
    found = np.full((n, n), len(topics) * np.log(1.0 - agreement), dtype=np.float32)
    for in_round, each in zip(topics, probabilities, strict=True):
        gain = np.log1p(agreement / (1.0 - agreement) / each).astype(np.float32) / 2
        for one in np.unique(in_round):
            there = np.flatnonzero(in_round == one)
            found[np.ix_(there, there)] += gain[there][:, None] + gain[there]
    np.fill_diagonal(found, -np.inf)
    return found


def companions(scores: Array) -> Array:
    return np.asarray(scores.argmax(axis=1))


def maybe_lone_words(tables: Array, most: int) -> Array:
    """The words with noised sums nearest to one, of those that may occur once.

    A word occurs equally often in all rounds, so the differences between rounds show the size of the noise.
    """
    sums = tables.sum(axis=1)
    away = np.abs(sums.mean(axis=0) - 1)
    if len(sums) > 1:
        noise = float(np.median(sums.std(axis=0, ddof=1))) / np.sqrt(len(sums))
        away[away > _DEVIATIONS * noise] = np.inf
    mixed = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(away)))  # ties are broken at random
    return np.sort(mixed[np.argsort(away[mixed], kind="stable")[:most]])


def companions_behind_noise(tables: Array, words: Array) -> Array:
    """The likeliest companion of each word in noised tables, by the correlation of their cells over all rounds and topics.

    Noise of different words is independent, so only what two words of one document share adds up. Cells are normalised, or the
    most frequent words would be the companions of all.
    """
    cells = tables[:, :, words].reshape(tables.shape[0] * tables.shape[1], len(words)).astype(np.float32)
    cells -= cells.mean(axis=0)
    cells /= np.maximum(np.linalg.norm(cells, axis=0), _SCARCE)
    found, best = np.zeros(len(words), dtype=np.int64), np.full(len(words), -np.inf, dtype=np.float32)
    for one in range(0, len(words), _BLOCK):
        for other in range(one, len(words), _BLOCK):
            scores = cells[:, one : one + _BLOCK].T @ cells[:, other : other + _BLOCK]
            if one == other:
                np.fill_diagonal(scores, -np.inf)  # no word is its own companion
            for at, begins, each in ((one, other, scores), (other, one, scores.T)):
                nearest = companions(each)
                value = each[np.arange(len(nearest)), nearest]
                better = np.flatnonzero(value > best[at : at + len(nearest)])
                best[at + better], found[at + better] = value[better], begins + nearest[better]
    return found


def mutual_companions(scores: Array) -> Iterator[Array]:
    """Pairs of words that are each other's likeliest companions, and likelier linked than not among so many words."""
    nearest = companions(scores)
    for word in np.flatnonzero(nearest[nearest] == np.arange(len(nearest))):
        if word < nearest[word] and scores[word, nearest[word]] > np.log(len(nearest)):
            yield np.array([word, nearest[word]])


def same_topics(topics: Array, probabilities: Array) -> Iterator[Array]:
    """Groups of words with the same topics in all rounds, if chance would hardly give another word the same."""
    surprise = -np.log(probabilities).sum(axis=0)
    _, group = np.unique(topics, axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    for words in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(words) > 1 and surprise[words[0]] > np.log(topics.shape[1]) + _MARGIN:
            yield words


COUNTS = "counts"
DOCUMENT, SENTENCE = "document", "sentence"
SENTENCES = ("sentence-lda",)
EXAMPLES, _MOST_WORDS = 6, 24


def companion(of: str) -> str:
    return f"rare words whose likeliest companion is of the same {of}"


def linked(of: str) -> str:
    return f"linked pairs of rare words that are of one {of}"


def links_found(of: str) -> str:
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
    by_sentence = view.public.plan.model.name in SENTENCES
    tables = {party: np.array([one.blocks[COUNTS] for one in found], float) for party, found in heard(view, COUNTS).items()}
    return tuple(_groups(party, whole, by_sentence, effort["words"]) for party, whole in tables.items())


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


def judge(guesses: tuple[WordGroups, ...], truth: GroundTruth) -> Score:
    """Looks up in which document, and in which sentence, each word is that occurs once."""
    measures: dict[str, Proportion | Estimate] = {}
    for of in (DOCUMENT, SENTENCE):
        names = companion(of), linked(of), links_found(of)
        rows = ((one, rows_of(one.party, of, truth)) for one in guesses)
        each = [scored_links(one, lone_rows(there), names) for one, there in rows if there is not None]
        measures |= {name: Proportion.over(found[name] for found in each) for name in names}
    known = ((one, rows_of(one.party, one.of, truth)) for one in guesses if one.groups)
    examples = [shown for one, rows in known if rows is not None for shown in of_groups(one, lone_rows(rows), truth.vocabulary)]
    return Score(measures, tuple(examples[:EXAMPLES]))


def scored_links(guess: WordGroups, home: Array, names: tuple[str, str, str]) -> Mapping[str, tuple[int, int]]:
    """Hits and trials by measure, over the words that were followed beside another word of their row.

    The measures are of companions, of linked pairs that are right, and of pairs that are linked; `home` has each word's row.
    """
    where = home[guess.words]
    mates = np.bincount(where[where >= 0])
    right = (where >= 0) & (where == home[guess.companions])
    good = named = 0
    for group in guess.groups:
        _, sizes = np.unique(home[group][home[group] >= 0], return_counts=True)
        good, named = good + int((sizes * (sizes - 1)).sum()) // 2, named + len(group) * (len(group) - 1) // 2
    there = int((mates * (mates - 1)).sum()) // 2
    found = (int(right.sum()), int(mates[mates > 1].sum())), (good, named), (good, there)
    return dict(zip(names, found, strict=True))


def rows_of(party: str, of: str, truth: GroundTruth) -> Any:
    """The documents or sentences of a party, or of all; None where sentences are not known."""
    held = truth.sentences if of == SENTENCE else truth.held
    if party:
        return held.get(party)
    return stacked(held.values()) if held else None


def lone_rows(rows: Any) -> Array:
    """The row, a document or a sentence, of each word that occurs once in all of them; -1 for the others."""
    columns = sparse.csc_array(rows)
    once = np.flatnonzero(np.asarray(columns.sum(axis=0)).ravel() == 1)
    home = np.full(rows.shape[1], -1, dtype=np.int64)
    there = sparse.coo_array(columns[:, once])
    held = there.data > 0
    home[once[there.col[held]]] = there.row[held]
    return home


def of_groups(guess: WordGroups, home: Array, vocabulary: tuple[str, ...]) -> Iterator[Example]:
    """The largest groups, each beside the followed kind of words in the row of its first word."""
    for group in sorted(guess.groups, key=len, reverse=True)[:2]:
        own = np.flatnonzero(home == home[group[0]]) if home[group[0]] >= 0 else group[:0]
        real, guessed = (first_words([vocabulary[word] for word in words], _MOST_WORDS) for words in (own, group))
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
    bears_on=("singling out", "inference"),
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
