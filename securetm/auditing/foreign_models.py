"""Reads topics that another library learned, from files that hold numbers and words only. It never unpickles anything.

A topic model is here a table of weights, topics x words. Whatever else a library keeps is not read.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.foreign_errors import BadTopicWeight, RepeatedTopicWord, UnknownTopicFile, UnsafeModelFile
from securetm.contracts import Array
from securetm.errors import NoSuchPath

_UNSAFE = (".pkl", ".pickle", ".joblib", ".model", ".bin", ".pt", ".pth", ".dill", ".gensim")
_MOST = 200_000_000  # numbers of one table
_WHOLE = 1e-3  # how near to whole numbers counts are
_NEAR = 0.02  # the same behind shares, which libraries keep in 32 bits
_LEAST_COUNT = 100  # of the rarest word of a topic, as far as counts are looked for behind shares


@dataclass(frozen=True)
class ForeignModel:
    """Topics from elsewhere."""

    name: str
    words: tuple[str, ...]
    weights: Array  # topics x words
    counted: Array | None = None  # the counts of words behind these weights, where they could be read back

    @property
    def topics(self) -> Array:
        """Each topic's shares of its words."""
        found: Array = self.weights / self.weights.sum(axis=1, keepdims=True)
        return found

    @property
    def totals(self) -> Array | None:
        """How often each word occurs in the training documents, where the weights tell it; else None.

        The totals of counts are whole numbers, and so they are where a prior in them adds up to one for each word.
        """
        found: Array = (self.weights if self.counted is None else self.counted).sum(axis=0)
        whole = np.abs(found - found.round()).max() <= _WHOLE and found.max() > 1
        return found if whole else None


def read_foreign(path: Path) -> ForeignModel:
    """The topics in that file or folder, checked."""
    if not path.exists():
        raise NoSuchPath(str(path))
    if path.suffix.lower() in _UNSAFE:
        raise UnsafeModelFile(str(path))
    read = _FORMATS.get("folder" if path.is_dir() else path.suffix.lower())
    if read is None:
        raise UnknownTopicFile(str(path), f"nothing is known of {path.suffix or 'files without an ending'}")
    try:
        words, weights = read(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, RecursionError) as problem:
        raise UnknownTopicFile(str(path), f"{type(problem).__name__}: {str(problem)[:200]}") from problem
    return _checked(path, words, weights)


def _checked(path: Path, words: Sequence[str], weights: Array) -> ForeignModel:
    if weights.ndim != 2 or weights.shape[1] != len(words) or not weights.size or weights.size > _MOST:
        raise UnknownTopicFile(str(path), f"weights of the form {weights.shape} for {len(words):,} words")
    if len(set(words)) < len(words):
        raise RepeatedTopicWord(str(path), next(word for word in words if list(words).count(word) > 1))
    if not np.isfinite(weights).all():
        raise BadTopicWeight(str(path), "no finite number (NaN or infinite)")
    if (weights < 0).any():
        raise BadTopicWeight(str(path), f"negative: {weights.min():g}")
    if not (weights.sum(axis=1) > 0).all():
        raise BadTopicWeight(str(path), "0 in a whole topic")
    table = weights.astype(np.float64)
    return ForeignModel(path.name, tuple(words), table, _counts_in(table))


# ---- counts behind shares ------------------------------------------------------------------------------------------


def _counts_in(shares: Array) -> Array | None:
    """Whole numbers of words behind the shares of each topic, with one prior for all words in them or none; else None."""
    if np.abs(shares.sum(axis=1) - 1).max() > _WHOLE:
        return None
    found = []
    for row in shares:
        if (counts := _whole_numbers(row - row.min())) is None:
            return None
        found.append(counts)
    return np.stack(found)


def _whole_numbers(shares: Array) -> Array | None:
    """The smallest whole numbers in these proportions, the least of them at most 100; None where there are none."""
    least = shares[shares > 0].min(initial=np.inf)
    for times in range(1, _LEAST_COUNT + 1) if np.isfinite(least) else ():
        counts = shares * (times / least)
        if np.abs(counts - counts.round()).max() <= _NEAR:
            found: Array = counts.round()
            return found
    return None


# ---- formats -------------------------------------------------------------------------------------------------------

Table = tuple[Sequence[str], Array]


def _csv(path: Path) -> Table:
    """Lines of topic, word and weight, under these names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _listed(path, ((row["topic"], row["word"], float(row["weight"])) for row in csv.DictReader(file)))


def _json(path: Path) -> Table:
    """Either {"vocabulary": [...], "weights": [[...]]}, or a list of topics: {word: weight}, or [[word, weight], ...]."""
    content = json.loads(path.read_text("utf-8"), object_pairs_hook=_once(path))
    if isinstance(content, dict) and "weights" in content:
        return [str(word) for word in content["vocabulary"]], np.array(content["weights"], dtype=np.float64)
    topics = content["topics"] if isinstance(content, dict) else content
    pairs = (topic.items() if isinstance(topic, dict) else topic for topic in topics)
    return _listed(path, ((n, word, float(weight)) for n, topic in enumerate(pairs) for word, weight in topic))


def _npz(path: Path) -> Table:
    """Arrays `weights` (topics x words) and `vocabulary` (texts); pickled objects in it are refused."""
    with np.load(path, allow_pickle=False) as found:
        try:
            return [str(word) for word in found["vocabulary"].tolist()], np.asarray(found["weights"], dtype=np.float64)
        except ValueError as problem:
            if "allow_pickle" not in str(problem):
                raise
            objects = "an array holds Python objects, which can run code; words are to be texts: .astype(str)"
            raise UnknownTopicFile(str(path), objects) from problem


def _bertopic(path: Path) -> Table:
    """A folder that BERTopic saved as safetensors: the c-TF-IDF matrix, and the words in its configuration.

    A weight is the word's share of the topic times a factor of the word, and the file holds these factors. So the counts of
    words in each topic are read back where the shares are fractions of whole numbers; else the weights are taken as they are.
    """
    from safetensors.numpy import load_file

    kept, config = load_file(path / "ctfidf.safetensors"), json.loads((path / "ctfidf_config.json").read_text("utf-8"))
    places: Mapping[str, int] = config["vectorizer_model"]["vocab"]
    words = [word for word, _ in sorted(places.items(), key=lambda pair: pair[1])]
    shape = tuple(int(n) for n in kept["shape"])
    if shape[0] * shape[1] > _MOST:
        raise ValueError(f"a table of {shape}")
    weights = sparse.csr_array((kept["data"], kept["indices"], kept["indptr"]), shape=shape).toarray()
    counts = _counts_behind(weights, kept["diag"]) if "diag" in kept else None
    return words, weights if counts is None else counts


def _counts_behind(weights: Array, factors: Array) -> Array | None:
    """Whole numbers of words behind shares that were multiplied by a factor of each word; None where there are none."""
    if factors.shape != weights.shape[1:] or not np.isfinite(factors).all() or (factors <= 0).any():
        return None
    return _counts_in(weights / factors)


def _listed(path: Path, lines: Iterable[tuple[Any, Any, float]]) -> Table:
    """A table from lines of topic, word and weight. Words that a topic does not name have weight 0 there."""
    places: dict[str, int] = {}
    rows: dict[str, dict[int, float]] = {}
    for topic, word, weight in lines:
        row = rows.setdefault(str(topic), {})
        place = places.setdefault(str(word), len(places))
        if place in row:
            raise RepeatedTopicWord(str(path), str(word))
        row[place] = weight
    if len(rows) * len(places) > _MOST:
        raise ValueError(f"a table of {len(rows)} topics and {len(places)} words")
    weights = np.zeros((len(rows), len(places)))
    for at, row in enumerate(rows.values()):
        weights[at, list(row)] = list(row.values())
    return list(places), weights


def _once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Refuses a table of JSON that names a word twice, of which Python would keep the last."""

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            raise RepeatedTopicWord(str(path), next(name for name in names if names.count(name) > 1))
        return found

    return read


_FORMATS: Mapping[str, Callable[[Path], Table]] = {".csv": _csv, ".json": _json, ".npz": _npz, "folder": _bertopic}
