"""Topics that are judged: of a trained model, from a file, or of a control that saw no document.

What a figure is worth is seen beside what controls reach. Whatever uses public vectors is to be compared with clusters of the
vectors alone.
"""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.corpus.word_vectors import WordVectors
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake, NoSuchPath, Unreadable
from securetm.models.mixed_topics import BagDocuments
from securetm.models.quality import named_topics

_LEAST_WORDS = 2  # of a topic
MOST_WORDS = 25  # of a topic; figures take the first ones of them
_ALPHA, _PASSES = 0.1, 50  # of a document's topic shares, where fixed topics have no model


@dataclass(frozen=True, eq=False)
class JudgedTopics:
    """The heaviest words of each topic, and what more is known: weights of words, and the model that gives documents topics."""

    name: str
    lists: tuple[tuple[str, ...], ...]  # heaviest words first
    vocabulary: tuple[str, ...] = ()
    weights: Array | None = None  # topics x vocabulary, rows sum to one
    model: TopicModel | None = None
    state: State | None = None

    @classmethod
    def of_weights(cls, name: str, weights: Array, vocabulary: Sequence[str]) -> JudgedTopics:
        """Topics without a model: documents get topics by folding in."""
        words = tuple(vocabulary)
        return cls(name, _lists(weights, words), words, weights / weights.sum(axis=1, keepdims=True))

    @classmethod
    def of_model(cls, name: str, model: TopicModel, state: State, vocabulary: Sequence[str]) -> JudgedTopics:
        """The topics of a trained model, which gives documents their topics itself."""
        weights, words = np.asarray(model.topics(state), dtype=np.float64), tuple(vocabulary)
        return cls(name, _lists(weights, words), words, weights, model, state)

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all topics, each once, alphabetically."""
        return tuple(sorted({word for one in self.lists for word in one}))

    def never_in(self, documents: Any) -> list[str]:
        """The words of the topics that are counted in none of these documents; nothing where there are no documents."""
        if documents is None:
            return []
        there = dict(zip(documents.vocabulary, documents.document_frequencies(), strict=True))
        return [word for word in self.words if not there.get(word)]

    def as_counted_in(self, documents: Any) -> JudgedTopics:
        """The same topics from a file, each word spelled as the documents' tokeniser spells it, where they have it so only.

        Two spellings of one word in a topic are one word, with the weights of both.
        """
        if documents is None or self.model is not None:
            return self
        there = set(documents.vocabulary)

        def spelled(word: str) -> str:
            lower = unicodedata.normalize("NFKC", word).replace("’", "'").lower()
            return lower if word not in there and lower in there else word

        if self.weights is None:
            lists = tuple(tuple(dict.fromkeys(map(spelled, one))) for one in self.lists)
            return self if lists == self.lists or min(map(len, lists)) < _LEAST_WORDS else replace(self, lists=lists)
        names = [spelled(word) for word in self.vocabulary]
        if tuple(names) == self.vocabulary:
            return self
        words, places = np.unique(names, return_inverse=True)
        weights = np.zeros((len(self), len(words)))
        np.add.at(weights.T, places, self.weights.T)
        return self.of_weights(self.name, weights, words.tolist())

    def shortened(self, words: int) -> JudgedTopics:
        """The same topics, of which no more than so many words are known by rank."""
        return replace(self, lists=tuple(one[:words] for one in self.lists))

    def first(self, words: int) -> list[tuple[str, ...]]:
        """As many words of each topic as asked for, or as many as the shortest topic has: the same number of each."""
        most = min(words, *(len(one) for one in self.lists))
        return [one[:most] for one in self.lists]

    def shares(self, documents: Any) -> Array:
        """Each document's topic weights: documents x topics, rows sum to one."""
        known = documents.project(self.vocabulary)
        if self.model is not None:
            return np.asarray(self.model.infer(self.state, known))  # type: ignore[arg-type]  # a model has a state
        return _held(known, self.vocabulary).shares(self._by_word(), np.full(len(self), _ALPHA), _PASSES, 1)

    def log_likelihood(self, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given those that are seen."""
        given, asked = (half.project(self.vocabulary) for half in (seen, unseen))
        if self.model is not None:
            return np.asarray(self.model.log_likelihood(self.state, given, asked))  # type: ignore[arg-type]
        return _held(asked, self.vocabulary).log_likelihood(self._by_word(), self.shares(given), 1)

    def folded(self) -> JudgedTopics:
        """The same topics without their model: documents get topics by folding in."""
        return replace(self, model=None, state=None)

    @property
    def reads_whole_texts(self) -> bool:
        """Whether its model reads embeddings: these are made of all words of a document, those to be predicted too."""
        return self.model is not None and self.model.embedding_size > 0

    def _by_word(self) -> Array:
        """Words x topics. A word is impossible in no topic: each weight is raised by a thousandth of an equal share."""
        assert self.weights is not None
        size = self.weights.shape[1]
        return np.ascontiguousarray((0.999 * self.weights + 0.001 / size).T)


def _lists(weights: Array, vocabulary: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(words) for words in named_topics(weights, vocabulary, MOST_WORDS))


def _held(documents: Any, vocabulary: tuple[str, ...]) -> BagDocuments:
    return BagDocuments.from_counts(documents.counts, len(vocabulary))


MOST_TOPICS = 10_000
_MOST_CELLS = 200_000_000  # topics x different words, of topics with weights
_LONGEST_CELL = 10_000  # characters of a cell of a CSV
_LARGEST = 1e300  # a weight; sums of such weights are finite
Topic = Mapping[str, float] | Sequence[str]


def read_topics(path: Path) -> JudgedTopics:
    """The topics in a file. JSON is a list of topics, or an object whose `topics` are such a list, as `securetm topics` prints.

    A topic is a list of words, heaviest first; a list of pairs of a word and a weight; or an object of words and weights. A CSV
    has the columns topic, word and weight (weight may be missing), or a topic's words on each line.
    """
    if not path.exists():
        raise NoSuchPath(str(path))
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise _bad_topics(str(path), f"it is not UTF-8 at byte {problem.start}") from None
    except OSError as problem:
        raise Unreadable(str(path), problem.strerror or type(problem).__name__) from problem
    found = _of_csv(text, path) if path.suffix.lower() == ".csv" else _of_json(text, path)
    if not 1 <= len(found) <= MOST_TOPICS:
        raise _bad_topics(str(path), f"it has {len(found)} topics, and 1 to {MOST_TOPICS:,} are wanted")
    return topics_of(found, path.name, str(path))


def topics_of(found: Sequence[Any], name: str, where: str) -> JudgedTopics:
    """Topics from lists of words, from lists of words with weights, or from words with weights by name."""
    topics = [_topic(one, number, where) for number, one in enumerate(found, start=1)]
    for number, one in enumerate(topics, start=1):
        if len(set(one)) < max(_LEAST_WORDS, len(one)):
            raise _bad_topics(where, f"topic {number} has fewer than two words, or a word twice")
    if not all(isinstance(one, Mapping) for one in topics):
        return JudgedTopics(name, tuple(tuple(one)[:MOST_WORDS] for one in topics))
    words = sorted({word for one in topics for word in one})
    if len(topics) * len(words) > _MOST_CELLS:
        raise _bad_topics(where, f"{len(topics):,} topics over {len(words):,} different words are too many to weigh")
    place = {word: number for number, word in enumerate(words)}
    weights = np.zeros((len(topics), len(words)))
    for row, one in zip(weights, topics, strict=True):
        row[[place[word] for word in one]] = list(one.values())  # type: ignore[union-attr]  # all are mappings
    if not (weights.sum(axis=1) > 0).all():
        raise _bad_topics(where, "the weights of a topic are all zero")
    return JudgedTopics.of_weights(name, weights, words)


def _topic(one: Any, number: int, where: str) -> Topic:
    if isinstance(one, Mapping) and isinstance(one.get("words"), list):
        one = one["words"]
    pairs = list(one.items()) if isinstance(one, Mapping) else one
    if not isinstance(pairs, list):
        raise _bad_topics(where, f"topic {number} is neither a list nor an object")
    if all(isinstance(word, str) for word in pairs):
        return pairs
    if all(isinstance(pair, list | tuple) and len(pair) == 2 and _is_weighted(*pair) for pair in pairs):
        return dict(pairs) if len(dict(pairs)) == len(pairs) else [word for word, _ in pairs]
    raise _bad_topics(where, f"topic {number} is neither a list of words nor of words with weights of 0 or more")


def _is_weighted(word: Any, weight: Any) -> bool:
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    return isinstance(word, str) and number and 0 <= weight <= _LARGEST


def _of_json(text: str, path: Path) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad_topics(str(path), "it is not JSON") from None
    if isinstance(found, Mapping):
        found = found.get("topics")
    if not isinstance(found, list):
        raise _bad_topics(str(path), "it is neither a list nor an object with a list called topics")
    return found


def _of_csv(text: str, path: Path) -> list[Any]:
    try:
        rows = [row for row in csv.reader(text.splitlines()) if any(row)]
    except csv.Error as problem:
        raise _bad_topics(str(path), f"it cannot be read as a table: {problem}") from None
    if any(len(cell) > _LONGEST_CELL for row in rows for cell in row):
        raise _bad_topics(str(path), f"it cannot be read as a table: a cell has more than {_LONGEST_CELL:,} characters")
    if not rows or not {"topic", "word"} <= set(rows[0]):
        return [[cell.strip() for cell in row if cell.strip()] for row in rows]
    place, found = {name: number for number, name in enumerate(rows[0])}, dict[str, list[Any]]()
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise _bad_topics(str(path), f"row {number} has {len(row)} cells where the first row has {len(rows[0])}")
        word = row[place["word"]]
        found.setdefault(row[place["topic"]], []).append(
            [word, _weight(row[place["weight"]], path, number)] if "weight" in place else word
        )
    return list(found.values())


def _weight(cell: str, path: Path, number: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise _bad_topics(str(path), f"the weight in row {number} is not a number") from None


RANDOM, CLUSTERS = "random topics", "vectors alone"
CONTROLS = (RANDOM, CLUSTERS)
_SHARPNESS = 8.0  # of a cluster's words: a word's weight is exp of so many times its cosine to the middle
_SPREAD = 0.05  # of random topics: a few words are heavy


def random_topics(words: Sequence[str], topics: int, seed: int = 0) -> JudgedTopics:
    """Each topic's weights are drawn at random, so its heaviest words are any words of the vocabulary."""
    drawn = np.random.default_rng(seed).gamma(_SPREAD, 1.0, (topics, len(words))) + 1e-12
    return JudgedTopics.of_weights(RANDOM, drawn, words)


def clustered_topics(words: Sequence[str], topics: int, vectors: WordVectors, seed: int = 0) -> JudgedTopics | None:
    """K-means of the words' vectors; a topic's heaviest words are those whose vectors point to the middle of the cluster.

    None where fewer words have a vector than there are topics.
    """
    from sklearn.cluster import KMeans  # takes long to import

    known = vectors.known(words)
    if len(known) < topics:
        return None
    middles = KMeans(topics, n_init=4, random_state=seed).fit(vectors.matrix(known)).cluster_centers_
    middles /= np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), 1e-12)
    cosines = middles @ vectors.matrix(words).T  # 0 for a word without a vector
    weights = np.exp(_SHARPNESS * (cosines - cosines.max(axis=1, keepdims=True)))
    return JudgedTopics.of_weights(CLUSTERS, weights, words)


def _bad_topics(path: str, problem: str) -> Mistake:
    return Mistake(
        "{path} holds no topics: {problem}",
        hint="write JSON: a list of topics, each a list of words, heaviest first, or an object of words and weights such as "
        '{{"rain": 0.2, "storm": 0.1}}; or a .csv with the columns topic, word and weight',
        path=path,
        problem=problem,
    )
