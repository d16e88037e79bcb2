"""How one block of documents lies in a file: plain little-endian arrays, one after the other, which are mapped and not copied.

It is no format of Arrow's: a writer of another version may choose other bytes for the same table, and the digest of a corpus
must not depend on that. A mini-batch from a large corpus finds nearly every document in another block, so a few documents are
read from their files without mapping these.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.corpus.document_names import DIGEST
from securetm.errors import Mistake

NAMES = ("label", "party", "date", "person")
_ALIGNED = 64
_COLUMNS = {  # type of an entry, and of what there is one for each
    "rows": ("<i8", "documents"),
    "texts": (f"({DIGEST},)u1", "documents"),
    "digests": (f"({DIGEST},)u1", "documents"),  # what each is called by, and its number among those that are called alike
    "copies": ("<i4", "documents"),
    **dict.fromkeys(NAMES, ("<i4", "documents")),
    "embeddings": ("<f4", "documents"),
    "token_ends": ("<i8", "documents"),
    "sentence_ends": ("<i8", "sentences"),
    "tokens": ("<i4", "tokens"),
    "starts": ("<i4", "starts"),
    "words": ("<i4", "nonzeros"),
    "times": ("<i4", "nonzeros"),
}
BY_DOCUMENT = ("rows", "texts", "digests", "copies", *NAMES, "embeddings")
COUNTS = ("starts", "words", "times")  # a CSR array: where each document begins, the words it has, and how often


@dataclass(frozen=True)
class BlockSize:
    """How much a block holds."""

    documents: int
    tokens: int
    sentences: int
    nonzeros: int = 0

    @property
    def starts(self) -> int:
        """Where each document's counts begin, and where all of them end."""
        return self.documents + 1


@dataclass(frozen=True)
class BlockLayout:
    """Which columns the blocks of a file have."""

    columns: tuple[str, ...]
    width: int = 0  # of an embedding

    @classmethod
    def of(cls, names: tuple[str, ...], width: int, *, counted: bool) -> BlockLayout:
        """The layout with these names of documents, with embeddings of this width if it is not 0, and with counts or not."""
        left_out = {*NAMES} - {*names} | (set() if width else {"embeddings"}) | (set() if counted else {*COUNTS})
        return cls(tuple(column for column in _COLUMNS if column not in left_out), width)

    def kind(self, column: str) -> np.dtype[Any]:
        """The type of an entry of a column."""
        kind = np.dtype(_COLUMNS[column][0])
        return np.dtype((kind, (self.width,))) if column == "embeddings" else kind

    @property
    def by_document(self) -> tuple[str, ...]:
        """The columns that have one entry for each document, whatever the others have."""
        return tuple(column for column in BY_DOCUMENT if column in self.columns)

    @lru_cache(maxsize=4_096)  # noqa: B019 - a layout is a value, and equal ones share what was computed
    def places(self, size: BlockSize) -> Mapping[str, tuple[int, int]]:
        """Where each column begins, in bytes from the beginning of the block, and how many bytes an entry of it takes."""
        found, at = {}, 0
        for column in self.columns:
            found[column] = at, self.kind(column).itemsize
            at += _padded(self._bytes(column, size))
        return found

    def length(self, size: BlockSize) -> int:
        """The bytes of a whole block."""
        return sum(_padded(self._bytes(column, size)) for column in self.columns)

    def _bytes(self, column: str, size: BlockSize) -> int:
        return _entries(column, size) * self.kind(column).itemsize

    def write(self, stream: BinaryIO, columns: Mapping[str, Array | list[Array]]) -> str:
        """Writes the columns of a block, each an array or several that follow one another, and returns their digest."""
        digest = hashlib.blake2b(digest_size=32)
        for column in self.columns:
            held, written = columns[column], 0
            for piece in held if isinstance(held, list) else [held]:
                raw = np.ascontiguousarray(piece, dtype=self.kind(column).base).reshape(-1).view(np.uint8).data
                stream.write(raw)
                digest.update(raw)
                written += len(raw)
            padding = bytes(_padded(written) - written)
            stream.write(padding)
            digest.update(padding)
        return digest.hexdigest()

    def mapped(self, path: Path, at: int, size: BlockSize) -> tuple[dict[str, Array], bytes | memoryview]:
        """The columns of the block that begins at this byte, without reading them, and all its bytes.

        Its pages leave memory with the last of these arrays. Whoever writes to an array writes to memory, never to the file.
        """
        length, skipped = self.length(size), at % mmap.ALLOCATIONGRANULARITY
        if not length:
            return {column: np.zeros(_entries(column, size), self.kind(column)) for column in self.columns}, b""
        opened = os.open(path, os.O_RDONLY)
        try:
            pages = mmap.mmap(opened, skipped + length, access=mmap.ACCESS_COPY, offset=at - skipped)
        finally:
            os.close(opened)
        columns = {
            column: np.frombuffer(pages, self.kind(column), _entries(column, size), skipped + place)
            for column, (place, _) in self.places(size).items()
        }
        return columns, memoryview(pages)[skipped : skipped + length]


def _entries(column: str, size: BlockSize) -> int:
    return int(getattr(size, _COLUMNS[column][1]))


def digest_of(raw: bytes | memoryview) -> str:
    """The digest of a block's bytes."""
    return hashlib.blake2b(raw, digest_size=32).hexdigest()


def _padded(length: int) -> int:
    return -(-length // _ALIGNED) * _ALIGNED


BlockColumns = Mapping[str, Array]


def size_of_block(columns: BlockColumns) -> BlockSize:
    """How much these columns hold."""
    nonzeros = len(columns["words"]) if "words" in columns else 0
    return BlockSize(len(columns["rows"]), len(columns["tokens"]), len(columns["sentence_ends"]), nonzeros)


def chosen_documents(columns: BlockColumns, rows: Array) -> dict[str, Array]:
    """The documents with these row numbers, in that order, copied."""
    found = {name: columns[name][rows] for name in BY_DOCUMENT if name in columns}
    found |= order_of(columns["tokens"], columns["token_ends"], columns["sentence_ends"], rows)
    return found | (_chosen_counts(columns, rows) if "starts" in columns else {})


def _chosen_counts(columns: BlockColumns, rows: Array) -> dict[str, Array]:
    begin, end = columns["starts"][rows], columns["starts"][rows + 1]
    starts = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int32)
    return {"starts": starts, "words": runs_of(columns["words"], begin, end), "times": runs_of(columns["times"], begin, end)}


def joined_documents(parts: Sequence[BlockColumns]) -> dict[str, Array]:
    """All documents of these parts, one after the other."""
    if len(parts) == 1:
        return dict(parts[0])
    found = {name: np.concatenate([part[name] for part in parts]) for name in (*BY_DOCUMENT, "tokens") if name in parts[0]}
    before = np.cumsum([0, *(len(part["tokens"]) for part in parts[:-1])])
    for name in ("token_ends", "sentence_ends"):
        found[name] = np.concatenate([part[name] + shift for part, shift in zip(parts, before, strict=True)])
    return found | (_joined_counts(parts) if "starts" in parts[0] else {})


def _joined_counts(parts: Sequence[BlockColumns]) -> dict[str, Array]:
    found = {name: np.concatenate([part[name] for part in parts]) for name in ("words", "times")}
    before = np.cumsum([0, *(len(part["words"]) for part in parts[:-1])])
    starts = [part["starts"][:-1] + shift for part, shift in zip(parts, before, strict=True)]
    return {**found, "starts": np.append(np.concatenate(starts), len(found["words"])).astype(np.int32)}


def counts_of(columns: BlockColumns, words: int) -> Any:
    """The counts as a CSR array over so many words, without copying them."""
    return sparse.csr_array((columns["times"], columns["words"], columns["starts"]), shape=(len(columns["rows"]), words))


FEW = 8  # documents of one block that are read alone; for more of them the block is mapped
_NEAR = 32  # sentence ends read on each side of where one is expected


@dataclass(frozen=True)
class BlockInFile:
    """A block in an open file."""

    path: str
    file: int
    at: int  # its first byte
    layout: BlockLayout
    size: BlockSize

    def raw(self, column: str, first: int, last: int) -> bytes:
        """The entries of a column from `first` up to `last`, as they are in the file."""
        place, width = self.layout.places(self.size)[column]
        found = os.pread(self.file, (last - first) * width, self.at + place + first * width)
        if len(found) < (last - first) * width:
            raise damaged_shard(self.path, "it is shorter than when it was written")
        return found

    def tokens_of(self, row: int) -> tuple[int, int]:
        """The places of the tokens of a document."""
        if not row:
            return 0, struct.unpack("<q", self.raw("token_ends", 0, 1))[0]
        return struct.unpack("<qq", self.raw("token_ends", row - 1, row + 1))

    def counts_of(self, row: int) -> tuple[int, int]:
        """The places of the counts of a document."""
        return struct.unpack("<ii", self.raw("starts", row, row + 2))

    def sentence_ends(self, start: int, stop: int) -> Array:
        """Where sentences end, beyond the first and up to the last of these places of tokens."""
        first = self._sentences_up_to(start)
        last = self._sentences_up_to(stop)
        return np.frombuffer(self.raw("sentence_ends", first, last), "<i8")

    def _sentences_up_to(self, place: int) -> int:
        """How many sentences end at this token or before: first looked for where equal sentences would end."""
        count, tokens = self.size.sentences, self.size.tokens
        guess = place * count // max(tokens, 1)
        low, high = max(0, guess - _NEAR), min(count, guess + _NEAR)
        near = np.frombuffer(self.raw("sentence_ends", low, high), "<i8")
        found = int(near.searchsorted(place, side="right"))
        if (found or not low) and (found < len(near) or high == count):
            return low + found
        return bisect_right(range(count), place, key=self._sentence_end)

    def _sentence_end(self, sentence: int) -> int:
        found: int = struct.unpack("<q", self.raw("sentence_ends", sentence, sentence + 1))[0]
        return found


def documents_alone(wanted: Iterable[tuple[BlockInFile, int]], layout: BlockLayout) -> dict[str, Array]:
    """The columns of documents, each named by its block and its row there, in that order."""
    plain, counted = layout.by_document, "starts" in layout.columns
    taken: dict[str, list[bytes]] = {column: [] for column in (*plain, "tokens", *(("words", "times") if counted else ()))}
    token_ends, starts, sentences = [0], [0], [np.empty(0, np.int64)]
    for block, row in wanted:
        for column in plain:
            taken[column].append(block.raw(column, row, row + 1))
        start, stop = block.tokens_of(row)
        taken["tokens"].append(block.raw("tokens", start, stop))
        sentences.append(block.sentence_ends(start, stop) + (token_ends[-1] - start))
        token_ends.append(token_ends[-1] + stop - start)
        if counted:
            begin, end = block.counts_of(row)
            for column in ("words", "times"):
                taken[column].append(block.raw(column, begin, end))
            starts.append(starts[-1] + end - begin)
    found = {column: np.frombuffer(bytearray().join(pieces), layout.kind(column)) for column, pieces in taken.items()}
    found |= {"token_ends": np.array(token_ends[1:], np.int64), "sentence_ends": np.concatenate(sentences)}
    return {**found, "starts": np.array(starts, np.int32)} if counted else found


def runs_of(values: Array, starts: Array, stops: Array) -> Array:
    """The values from each start up to its stop, one run after the other."""
    starts, stops = np.asarray(starts, dtype=np.int64), np.asarray(stops, dtype=np.int64)
    first = np.ones(len(starts), dtype=bool)  # runs that do not go on where the one before ended
    first[1:] = starts[1:] != stops[:-1]
    last = np.concatenate([first[1:], [True]])[: len(stops)]
    runs = [values[start:stop] for start, stop in zip(starts[first].tolist(), stops[last].tolist(), strict=True)]
    return np.concatenate([values[:0], *runs])


def order_of(tokens: Array, token_ends: Array, sentence_ends: Array, rows: Array) -> dict[str, Array]:
    """The reading order of the documents with these row numbers, in that order."""
    stops = token_ends[rows]
    starts = np.where(rows > 0, token_ends[rows - 1], 0)
    ends = np.cumsum(stops - starts)
    first, last = (np.searchsorted(sentence_ends, of, side="right") for of in (starts, stops))
    moved = ends - stops  # by which each document's places change
    ends_of_sentences = runs_of(sentence_ends, first, last) + np.repeat(moved, last - first)
    return {"tokens": runs_of(tokens, starts, stops), "token_ends": ends, "sentence_ends": ends_of_sentences}


def damaged_shard(path: str, problem: str) -> Mistake:
    """A file of a corpus on disk that is not as it was written."""
    return Mistake(
        "{path} is damaged, was cut short or was changed: {problem}",
        hint="build the corpus again (securetm corpus build SOURCE --out DIR, with the same settings), or copy that file again",
        path=path,
        problem=problem,
    )
