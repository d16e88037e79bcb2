"""Computes every figure of some topics, beside what topics reach that saw no document. What cannot be computed says why.

Whether one model is better than another one on the same documents, or only luckier with these, says the paired bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.word_vectors import WordVectors
from securetm.data_classes import dataclass, field
from securetm.models.quality import document_npmi, perplexity, perplexity_with_interval
from securetm.quality.judged_topics import JudgedTopics, clustered_topics, random_topics
from securetm.quality.measures import (
    Classified,
    TooFewLabels,
    WeightedWords,
    c_v,
    classified,
    closest_distances,
    document_similarity_score,
    embedding_coherence,
    on_common_words,
    stability,
    topic_similarity_score,
    weight_stability,
    window_npmi,
)
from securetm.stages import Stages, Unwatched


@dataclass(frozen=True, eq=False)
class Given:
    """What figures are computed from. `lacking` says of each input that is not there why, and what to do."""

    documents: Any = None  # a corpus over its own words
    held_out: Array | None = None  # the rows of documents that nobody trained on
    vectors: WordVectors | None = None
    against: JudgedTopics | None = None
    other_seeds: Sequence[JudgedTopics] = ()
    seed: int = 0
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> Array | None:
        return None if self.documents is None else self.documents.labels


@dataclass(frozen=True, eq=False)
class TopicsOnDocuments:
    """Topics, and what follows from them for the documents. Everything is computed once, when a figure needs it."""

    topics: JudgedTopics
    given: Given

    @cached_property
    def shares(self) -> Array:
        return self.topics.shares(self.given.documents)

    @cached_property
    def classified(self) -> Classified:
        """What the topic weights say of each document's label."""
        return classified(self.shares, self.given.labels, seed=self.given.seed)

    @cached_property
    def _held(self) -> tuple[Any, Any]:
        """The seen and the unseen half of each held-out document, in the topics' own words."""
        assert self.given.held_out is not None
        known = self.given.documents.select(self.given.held_out).project(self.topics.vocabulary)
        found: tuple[Any, Any] = known.halves(self.given.seed)
        return found

    @cached_property
    def unseen_words(self) -> Array:
        """The number of words to predict in each held-out document."""
        return np.asarray(self._held[1].counts.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def likelihood(self) -> Array:
        """The log-likelihood of the unseen half of each held-out document."""
        return self.topics.log_likelihood(*self._held)

    @cached_property
    def folded_likelihood(self) -> Array:
        """The same by folding in under fixed topics, which asks no model. It is what topics of any origin have."""
        return self.topics.folded().log_likelihood(*self._held)

    @cached_property
    def likelihood_by_frequencies(self) -> Array:
        """The same by the frequencies of words alone: those of all words but the unseen ones, each raised by one."""
        known = self.given.documents.project(self.topics.vocabulary)
        unseen = self._held[1].counts
        counts = np.asarray(known.counts.sum(axis=0)).ravel() - np.asarray(unseen.sum(axis=0)).ravel() + 1.0
        return np.asarray(unseen @ np.log(counts / counts.sum())).ravel()

    def rows_of(self, words: int) -> tuple[Any, Array]:
        """The documents over their own words and the topics' first words, and the places of these words in the vocabulary."""
        first, known = self.topics.first(words), self.given.documents.vocabulary
        place = {word: number for number, word in enumerate(known)}
        more = sorted({word for topic in first for word in topic if word not in place})
        place |= {word: number for number, word in enumerate(more, start=len(known))}
        wide = self.given.documents.project((*known, *more))
        return wide, np.array([[place[word] for word in topic] for topic in first])

    def moved(self, words: int) -> list[WeightedWords]:
        """Each topic's first words that have a vector, with their weights; equal weights where the topics have none."""
        vectors, topics = self.given.vectors, self.topics
        assert vectors is not None
        place = {word: number for number, word in enumerate(topics.vocabulary)}
        found = []
        for number, listed in enumerate(topics.first(words)):
            known = vectors.known(listed)
            weights = np.ones(len(known))
            if topics.weights is not None:
                weights = topics.weights[number, [place[word] for word in known]] + 1e-12
            found.append(WeightedWords(vectors.matrix(known), weights / max(weights.sum(), 1e-300)))
        return found


WORDS, DIVERSITY_WORDS = 10, 25
MOST_COMPARED = 2_000  # documents that are compared with each other for DSS: every pair of them
_Z = 1.96


@dataclass(frozen=True, eq=False)
class FigureValue:
    """A figure's value, with the ends of its 95 % interval and its value for each topic, where it has these."""

    value: float
    low: float | None = None
    high: float | None = None
    by_topic: Array | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: its name in JSON and on the screen, its range, which end is better, and the inputs that it needs by name."""

    name: str
    title: str
    range: str
    better: str  # higher, lower, or nothing
    needs: tuple[str, ...]
    measure: Callable[[TopicsOnDocuments], FigureValue]


def _mean(by_topic: Array) -> FigureValue:
    return FigureValue(float(np.mean(by_topic)), by_topic=by_topic)


def _npmi_documents(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(document_npmi(top, documents.counts))


def _npmi_windows(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(window_npmi(top, documents.tokens, documents.token_ends))


def _c_v(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(c_v(top, documents.tokens, documents.token_ends))


def _embedding_coherence(judged: TopicsOnDocuments) -> FigureValue:
    first = judged.topics.first(WORDS)
    words = sorted({word for topic in first for word in topic})
    place = {word: number for number, word in enumerate(words)}
    assert judged.given.vectors is not None
    return _mean(embedding_coherence(np.array([[place[w] for w in t] for t in first]), judged.given.vectors.matrix(words)))


def _diversity(judged: TopicsOnDocuments) -> FigureValue:
    listed = [word for topic in judged.topics.first(DIVERSITY_WORDS) for word in topic]
    return FigureValue(len(set(listed)) / len(listed))


def _accuracy(judged: TopicsOnDocuments) -> FigureValue:
    found = judged.classified
    away = _Z * float(np.sqrt(found.accuracy * (1 - found.accuracy) / len(found.labels)))
    return FigureValue(found.accuracy, max(0.0, found.accuracy - away), min(1.0, found.accuracy + away))


def _macro_f1(judged: TopicsOnDocuments) -> FigureValue:
    return FigureValue(judged.classified.macro_f1)


def _perplexity(likelihood: Array, words: Array) -> FigureValue:
    found = perplexity_with_interval(likelihood, words)
    return FigureValue(found["held_out"], found["held_out_low"], found["held_out_high"])


def _held_out(judged: TopicsOnDocuments) -> FigureValue:
    return _perplexity(judged.likelihood, judged.unseen_words)


def _folded(judged: TopicsOnDocuments) -> FigureValue:
    return _perplexity(judged.folded_likelihood, judged.unseen_words)


def _tss(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    mine, other = on_common_words(judged.topics, judged.given.against)
    return FigureValue(topic_similarity_score(other, mine))


def _dss(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    rows = np.arange(len(judged.shares))
    if len(rows) > MOST_COMPARED:
        rows = np.sort(np.random.default_rng(judged.given.seed).choice(rows, MOST_COMPARED, replace=False))
    true = judged.given.against.shares(judged.given.documents.select(rows))
    return FigureValue(document_similarity_score(true, judged.shares[rows]))


def _amwmd(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    others = TopicsOnDocuments(judged.given.against, judged.given).moved(WORDS)
    mine = [one for one in judged.moved(WORDS) if len(one.weights)]
    distances = closest_distances([one for one in others if len(one.weights)], mine) if mine else np.zeros(0)
    return FigureValue(float(distances.sum()) if len(distances) else float("nan"), by_topic=distances)


DOCUMENTS, ORDER, VECTORS, WEIGHTS, LABELS = "documents", "order", "vectors", "weights", "labels"
HELD_OUT, MODEL_OF_WORDS, AGAINST, AGAINST_WEIGHTS = "held_out", "model_of_words", "against", "against_weights"

FIGURES = (
    Figure("npmi_documents", "NPMI by documents", "-1 to 1", "higher", (DOCUMENTS,), _npmi_documents),
    Figure("npmi_windows", "NPMI by windows of 10", "-1 to 1", "higher", (DOCUMENTS, ORDER), _npmi_windows),
    Figure("c_v", "c_v by windows of 110", "0 to 1", "higher", (DOCUMENTS, ORDER), _c_v),
    Figure("embedding_coherence", "coherence by vectors", "-1 to 1", "higher", (VECTORS,), _embedding_coherence),
    Figure("diversity", "diversity", "0 to 1", "higher", (), _diversity),
    Figure("held_out", "held-out perplexity", "1 or more", "lower", (WEIGHTS, DOCUMENTS, HELD_OUT, MODEL_OF_WORDS), _held_out),
    Figure("held_out_folded", "  topics folded in", "1 or more", "lower", (WEIGHTS, DOCUMENTS, HELD_OUT), _folded),
    Figure("accuracy", "accuracy of a classifier", "0 to 1", "higher", (WEIGHTS, DOCUMENTS, LABELS), _accuracy),
    Figure("macro_f1", "macro F1 of a classifier", "0 to 1", "higher", (WEIGHTS, DOCUMENTS, LABELS), _macro_f1),
    Figure("tss", "TSS to the other topics", "0 or more", "higher", (AGAINST, WEIGHTS, AGAINST_WEIGHTS), _tss),
    Figure("dss", "DSS to the other topics", "0 or more", "lower", (AGAINST, WEIGHTS, AGAINST_WEIGHTS, DOCUMENTS), _dss),
    Figure("amwmd", "AMWMD to the others", "0 or more", "lower", (AGAINST, VECTORS), _amwmd),
)


RESAMPLES = 2_000
_BLOCK = 1 << 22  # numbers that are drawn at once


@dataclass(frozen=True)
class Difference:
    """A mean difference over documents, its interval (95 of 100 hold), and how often chance alone does as much."""

    value: float
    low: float
    high: float
    chance: float  # two-sided; at least 1 / (RESAMPLES + 1)

    @property
    def sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def paired_difference(mine: Array, other: Array, words: Array, seed: int = 0) -> Difference:
    """The difference of two sums over documents, per word: mine minus the other's.

    `mine` and `other` are one number per document (log-likelihoods, or 1 where a label is right), `words` what they are divided
    by (words, or 1 for each document). Documents are drawn with replacement, both numbers of a document together.
    """
    apart, words = np.asarray(mine, dtype=np.float64) - other, np.asarray(words, dtype=np.float64)
    if not words.sum() > 0 or not np.isfinite(apart).all():
        return Difference(*[float("nan")] * 4)
    rng, drawn, several = np.random.default_rng(seed), np.empty(RESAMPLES), max(1, _BLOCK // len(apart))
    for first in range(0, RESAMPLES, several):
        rows = rng.integers(0, len(apart), (min(several, RESAMPLES - first), len(apart)))
        drawn[first : first + len(rows)] = apart[rows].sum(axis=1) / np.maximum(words[rows].sum(axis=1), 1e-12)
    low, high = np.quantile(drawn, (0.025, 0.975))
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    chance = min(1.0, 2 * (beyond + 1) / (RESAMPLES + 1))
    return Difference(float(apart.sum() / words.sum()), float(low), float(high), chance)


FREQUENCIES = "word frequencies alone"
MOST_CONTROL_WORDS = 5_000  # of documents, where topics are lists of words and have no vocabulary of their own
NEEDED = {
    "documents": "needs documents: --corpus FILE",
    "order": "needs documents whose words have an order; these are counts",
    "vectors": "needs word vectors: --vectors glove, minilm or FILE",
    "weights": "needs a run, or topics with the weights of words",
    "labels": "needs labels: --label COLUMN",
    "held_out": "needs documents that nobody trained on: --corpus FILE",
    "model_of_words": "its model reads embeddings of whole texts, the words to be predicted too; folded-in topics read no text",
    "against": "needs other topics: --against RUN or FILE",
    "against_weights": "needs a run or weights of words in --against too",
    "other_seeds": "needs runs of other seeds: --other-seed RUN",
    "same_words": "needs two runs with the same list of words: --vocabulary FILE for both",
}


@dataclass(frozen=True, eq=False)
class Row:
    """One figure: its value, what the controls reach, or why there is no value."""

    name: str
    title: str
    range: str
    better: str
    measured: FigureValue | None = None
    controls: Mapping[str, float] = field(default_factory=dict)
    needs: str = ""

    def table(self) -> dict[str, Any]:
        found = self.measured or FigureValue(math.nan)
        by_topic = None if found.by_topic is None else [round(float(value), 6) for value in found.by_topic]
        facts = {"figure": self.name, "title": self.title, "range": self.range, "better": self.better, "value": found.value}
        return {
            **facts, "low": found.low, "high": found.high, "controls": dict(self.controls), "by_topic": by_topic,
            "needs": self.needs or None,
        }  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """A figure of two models on the same documents, and whether their difference is more than chance."""

    name: str
    title: str
    mine: float
    other: float
    difference: Difference
    documents: int
    better: str = "higher"
    needs: str = ""

    def table(self) -> dict[str, Any]:
        apart = self.difference
        ends = {"difference": apart.value, "low": apart.low, "high": apart.high, "chance": apart.chance, "sure": apart.sure}
        facts = {"figure": self.name, "title": self.title, "mine": self.mine, "other": self.other}
        return {**facts, **ends, "documents": self.documents, "needs": self.needs or None}


@dataclass(frozen=True, eq=False)
class Evaluation:
    topics: JudgedTopics
    rows: tuple[Row, ...]
    compared: tuple[Compared, ...] = ()


def evaluate(topics: JudgedTopics, given: Given, stages: Stages | None = None) -> Evaluation:
    """Every figure that can be computed from what is given, and of each other one what it needs."""
    stages = stages or Unwatched()
    stages.stage("judging topics", len(FIGURES) + 3)
    judged = TopicsOnDocuments(topics, given)
    controls = [TopicsOnDocuments(one, given) for one in _controls(topics, given)]
    rows = []
    for number, figure in enumerate(FIGURES, start=1):
        rows.append(_row(figure, judged, controls))
        stages.step(number)
    rows += list(_stable(topics, given))
    stages.step(len(FIGURES) + 2)
    compared: tuple[Compared, ...] = ()  # of two models on the same documents: words that they predict, labels that they find
    if given.against is not None:
        other = TopicsOnDocuments(given.against, given)
        compared = _compared_words(judged, other), _compared_labels(judged, other)
    stages.step(len(FIGURES) + 3)
    return Evaluation(topics, tuple(rows), compared)


def _row(figure: Figure, judged: TopicsOnDocuments, controls: list[TopicsOnDocuments]) -> Row:
    facts = (figure.name, figure.title, figure.range, figure.better)
    if missing := next((need for need in figure.needs if not has(need, judged)), ""):
        return Row(*facts, needs=judged.given.lacking.get(missing, NEEDED[missing]))
    try:
        measured = figure.measure(judged)
    except TooFewLabels as problem:
        return Row(*facts, needs=f"{problem}; {problem.advice()}")
    beside = {one.topics.name: figure.measure(one).value for one in controls}
    if figure.name == "held_out_folded":
        beside[FREQUENCIES] = perplexity(judged.likelihood_by_frequencies, judged.unseen_words)
    return Row(*facts, measured, beside)


def has(need: str, judged: TopicsOnDocuments) -> bool:
    given, documents = judged.given, judged.given.documents
    there: dict[str, Callable[[], bool]] = {
        "documents": lambda: documents is not None and len(documents) > 0,
        "order": lambda: documents.tokens is not None,
        "vectors": lambda: given.vectors is not None,
        "weights": lambda: judged.topics.weights is not None,
        LABELS: lambda: given.labels is not None,
        HELD_OUT: lambda: given.held_out is not None and judged.unseen_words.sum() > 0,
        MODEL_OF_WORDS: lambda: not judged.topics.reads_whole_texts,
        "against": lambda: given.against is not None,
        "against_weights": lambda: given.against is not None and given.against.weights is not None,
    }
    return there[need]()


def _controls(topics: JudgedTopics, given: Given, seed: int = 0) -> list[JudgedTopics]:
    """Topics that saw no document, as many and over the same words."""
    words = _words(topics, given)
    clusters = None if given.vectors is None else clustered_topics(words, len(topics), given.vectors, seed)
    ranked = min(len(one) for one in topics.lists)
    return [one.shortened(ranked) for one in (random_topics(words, len(topics), seed), clusters) if one is not None]


def _words(topics: JudgedTopics, given: Given) -> tuple[str, ...]:
    """The vocabulary of the topics; that of the documents where they have none, or else the words of the lists."""
    if topics.vocabulary:
        return topics.vocabulary
    listed = {word for one in topics.lists for word in one}
    if given.documents is not None:
        frequent = np.argsort(-given.documents.document_frequencies(), kind="stable")[:MOST_CONTROL_WORDS]
        listed |= {given.documents.vocabulary[word] for word in frequent}
    return tuple(sorted(listed))


def _stable(topics: JudgedTopics, given: Given) -> Iterator[Row]:
    """How much of the topics other seeds find again."""
    facts = (("stability", "other seeds: same words"), ("weight_stability", "other seeds: same weights"))
    runs = [topics, *given.other_seeds]
    drawn = list(zip(*(_controls(topics, given, seed) for seed in range(len(runs))), strict=True)) if len(runs) > 1 else []
    for (name, title), measure in zip(facts, (stability, weight_stability), strict=True):
        missing = "other_seeds" if len(runs) < 2 else ""
        if not missing and measure is weight_stability and any(one.weights is None for one in runs):
            missing = "weights"
        if missing:
            yield Row(name, title, "0 to 1", "higher", needs=given.lacking.get(missing, NEEDED[missing]))
            continue
        beside = {several[0].name: measure(several) for several in drawn}
        yield Row(name, title, "0 to 1", "higher", FigureValue(measure(runs)), beside)


def _compared_words(judged: TopicsOnDocuments, other: TopicsOnDocuments) -> Compared:
    name, title = "log_likelihood", "log-likelihood per word"
    missing = _lacks(judged, other, "held_out")
    if not missing and set(judged.topics.vocabulary) != set(other.topics.vocabulary):
        missing = NEEDED["same_words"]
    if missing:
        return _not_compared(name, title, missing)
    words, folded = judged.unseen_words, judged.topics.reads_whole_texts or other.topics.reads_whole_texts
    mine, theirs = (one.folded_likelihood if folded else one.likelihood for one in (judged, other))
    apart = paired_difference(mine, theirs, words, judged.given.seed)
    whole = words.sum()
    said = f"{title}, topics folded in" if folded else title
    return Compared(name, said, float(mine.sum() / whole), float(theirs.sum() / whole), apart, int((words > 0).sum()))


def _compared_labels(judged: TopicsOnDocuments, other: TopicsOnDocuments) -> Compared:
    name, title = "accuracy", "accuracy of a classifier"
    if missing := _lacks(judged, other, "labels"):
        return _not_compared(name, title, missing)
    try:
        mine, theirs = judged.classified, other.classified
    except TooFewLabels as problem:
        return _not_compared(name, title, str(problem))
    apart = paired_difference(mine.right, theirs.right, np.ones(len(mine.labels)), judged.given.seed)
    return Compared(name, title, mine.accuracy, theirs.accuracy, apart, len(mine.labels))


def _lacks(judged: TopicsOnDocuments, other: TopicsOnDocuments, last: str) -> str:
    """What the comparison lacks, or nothing."""
    needs = ("weights", "against_weights", "documents", last)
    missing = next((need for need in needs if not has(need, judged) or (need == last and not has(need, other))), "")
    return judged.given.lacking.get(missing, NEEDED[missing]) if missing else ""


def _not_compared(name: str, title: str, why: str) -> Compared:
    return Compared(name, title, math.nan, math.nan, Difference(*[math.nan] * 4), 0, needs=why)
