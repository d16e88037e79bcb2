"""Computes every figure of some topics, beside what topics reach that saw no document. What cannot be computed says why.

Whether one model is better than another one on the same documents, or only luckier with these, says the paired bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.models.quality import perplexity
from securetm.quality.classification import TooFewLabels
from securetm.quality.figures import FIGURES, HELD_OUT, LABELS, MODEL_OF_WORDS, Figure, FigureValue, Given, TopicsOnDocuments
from securetm.quality.judged_topics import JudgedTopics, clustered_topics, random_topics
from securetm.quality.similarity import stability, weight_stability
from securetm.stages import Stages, Unwatched

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
    drawn = _resampled(apart, words, np.random.default_rng(seed))
    low, high = np.quantile(drawn, (0.025, 0.975))
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    chance = min(1.0, 2 * (beyond + 1) / (RESAMPLES + 1))
    return Difference(float(apart.sum() / words.sum()), float(low), float(high), chance)


def _resampled(apart: Array, words: Array, rng: np.random.Generator) -> Array:
    """The difference per word in each of many samples of the documents."""
    found, several = np.empty(RESAMPLES), max(1, _BLOCK // len(apart))
    for first in range(0, RESAMPLES, several):
        rows = rng.integers(0, len(apart), (min(several, RESAMPLES - first), len(apart)))
        found[first : first + len(rows)] = apart[rows].sum(axis=1) / np.maximum(words[rows].sum(axis=1), 1e-12)
    return found


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
        """The row ready for JSON."""
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
        """The comparison ready for JSON."""
        apart = self.difference
        ends = {"difference": apart.value, "low": apart.low, "high": apart.high, "chance": apart.chance, "sure": apart.sure}
        facts = {"figure": self.name, "title": self.title, "mine": self.mine, "other": self.other}
        return {**facts, **ends, "documents": self.documents, "needs": self.needs or None}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All figures of some topics."""

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
    compared = tuple(_compared(judged)) if given.against is not None else ()
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
    """Whether this input of a figure is there."""
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


def _compared(judged: TopicsOnDocuments) -> Iterator[Compared]:
    """The differences of two models on the same documents: of words that they predict, and of labels that they find."""
    given, against = judged.given, judged.given.against
    assert against is not None
    other = TopicsOnDocuments(against, given)
    yield _compared_words(judged, other)
    yield _compared_labels(judged, other)


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
