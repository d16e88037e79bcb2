"""Reads topics from a file: lists of words, or words with weights, in JSON or CSV. Whatever made them is not needed."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securetm.errors import NoSuchPath, Unreadable
from securetm.quality.judged_topics import MOST_WORDS, JudgedTopics
from securetm.quality.quality_errors import BadTopics

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
        raise BadTopics(str(path), f"it is not UTF-8 at byte {problem.start}") from None
    except OSError as problem:
        raise Unreadable(str(path), problem.strerror or type(problem).__name__) from problem
    found = _of_csv(text, path) if path.suffix.lower() == ".csv" else _of_json(text, path)
    if not 1 <= len(found) <= MOST_TOPICS:
        raise BadTopics(str(path), f"it has {len(found)} topics, and 1 to {MOST_TOPICS:,} are wanted")
    return topics_of(found, path.name, str(path))


def topics_of(found: Sequence[Any], name: str, where: str) -> JudgedTopics:
    """Topics from lists of words, from lists of words with weights, or from words with weights by name."""
    topics = [_topic(one, number, where) for number, one in enumerate(found, start=1)]
    for number, one in enumerate(topics, start=1):
        if len(set(one)) < max(2, len(one)):
            raise BadTopics(where, f"topic {number} has fewer than two words, or a word twice")
    if not all(isinstance(one, Mapping) for one in topics):
        return JudgedTopics(name, tuple(tuple(one)[:MOST_WORDS] for one in topics))
    words = sorted({word for one in topics for word in one})
    if len(topics) * len(words) > _MOST_CELLS:
        raise BadTopics(where, f"{len(topics):,} topics over {len(words):,} different words are too many to weigh")
    place = {word: number for number, word in enumerate(words)}
    weights = np.zeros((len(topics), len(words)))
    for row, one in zip(weights, topics, strict=True):
        row[[place[word] for word in one]] = list(one.values())  # type: ignore[union-attr]  # all are mappings
    if not (weights.sum(axis=1) > 0).all():
        raise BadTopics(where, "the weights of a topic are all zero")
    return JudgedTopics.of_weights(name, weights, words)


def _topic(one: Any, number: int, where: str) -> Topic:
    if isinstance(one, Mapping) and isinstance(one.get("words"), list):
        one = one["words"]
    pairs = list(one.items()) if isinstance(one, Mapping) else one
    if not isinstance(pairs, list):
        raise BadTopics(where, f"topic {number} is neither a list nor an object")
    if all(isinstance(word, str) for word in pairs):
        return pairs
    if all(isinstance(pair, list | tuple) and len(pair) == 2 and _is_weighted(*pair) for pair in pairs):
        return dict(pairs) if len(dict(pairs)) == len(pairs) else [word for word, _ in pairs]
    raise BadTopics(where, f"topic {number} is neither a list of words nor of words with weights of 0 or more")


def _is_weighted(word: Any, weight: Any) -> bool:
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    return isinstance(word, str) and number and 0 <= weight <= _LARGEST


def _of_json(text: str, path: Path) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadTopics(str(path), "it is not JSON") from None
    if isinstance(found, Mapping):
        found = found.get("topics")
    if not isinstance(found, list):
        raise BadTopics(str(path), "it is neither a list nor an object with a list called topics")
    return found


def _of_csv(text: str, path: Path) -> list[Any]:
    try:
        rows = [row for row in csv.reader(text.splitlines()) if any(row)]
    except csv.Error as problem:
        raise BadTopics(str(path), f"it cannot be read as a table: {problem}") from None
    if any(len(cell) > _LONGEST_CELL for row in rows for cell in row):
        raise BadTopics(str(path), f"it cannot be read as a table: a cell has more than {_LONGEST_CELL:,} characters")
    if not rows or not {"topic", "word"} <= set(rows[0]):
        return [[cell.strip() for cell in row if cell.strip()] for row in rows]
    place, found = {name: number for number, name in enumerate(rows[0])}, dict[str, list[Any]]()
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise BadTopics(str(path), f"row {number} has {len(row)} cells where the first row has {len(rows[0])}")
        word = row[place["word"]]
        found.setdefault(row[place["topic"]], []).append(
            [word, _weight(row[place["weight"]], path, number)] if "weight" in place else word
        )
    return list(found.values())


def _weight(cell: str, path: Path, number: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise BadTopics(str(path), f"the weight in row {number} is not a number") from None
