"""How one block of documents lies in a file: plain little-endian arrays, one after the other, which are mapped and not copied.

It is no format of Arrow's: a writer of another version may choose other bytes for the same table, and the digest of a corpus
must not depend on that. It does not know which documents make a block.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from securetm.contracts import Array
from securetm.corpus.contents import DIGEST

NAMES = ("label", "party", "date", "person")
_ALIGNED = 64
_COLUMNS = {  # type, and how many numbers there are for each document, sentence, token or count
    "rows": ("<i8", "documents"),
    "texts": ("|u1", "texts"),
    "digests": ("|u1", "texts"),  # what each document is called by, and its number among those that are called alike
    "copies": ("<i4", "documents"),
    **dict.fromkeys(NAMES, ("<i4", "documents")),
    "embeddings": ("<f4", "embeddings"),
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

    def shape(self, column: str, size: BlockSize) -> tuple[int, ...]:
        """The shape of a column of a block."""
        by = _COLUMNS[column][1]
        shapes = {
            "texts": (size.documents, DIGEST),
            "embeddings": (size.documents, self.width),
            "starts": (size.documents + 1,),
        }
        return shapes[by] if by in shapes else (int(getattr(size, by)),)

    @property
    def by_document(self) -> tuple[str, ...]:
        """The columns that have one entry for each document, whatever the others have."""
        return tuple(column for column in BY_DOCUMENT if column in self.columns)

    def places(self, size: BlockSize) -> dict[str, int]:
        """Where each column begins, in bytes from the beginning of the block."""
        found, at = {}, 0
        for column in self.columns:
            found[column] = at
            at += _padded(self._bytes(column, size))
        return found

    @lru_cache(maxsize=4_096)  # noqa: B019 - a layout is a value, and equal ones share what was computed
    def entries(self, size: BlockSize) -> Mapping[str, tuple[int, int]]:
        """Where each column begins, and how many bytes an entry of it takes."""
        return {column: (place, self._entry(column)) for column, place in self.places(size).items()}

    def array(self, column: str, raw: bytearray) -> Array:
        """The entries of a column as an array."""
        found = np.frombuffer(raw, _COLUMNS[column][0])
        return found.reshape(-1, self._across(column)) if column in ("texts", "digests", "embeddings") else found

    def _entry(self, column: str) -> int:
        return self._across(column) * np.dtype(_COLUMNS[column][0]).itemsize

    def _across(self, column: str) -> int:
        return {"texts": DIGEST, "digests": DIGEST, "embeddings": self.width}.get(column, 1)

    def length(self, size: BlockSize) -> int:
        """The bytes of a whole block."""
        return sum(_padded(self._bytes(column, size)) for column in self.columns)

    def _bytes(self, column: str, size: BlockSize) -> int:
        return prod(self.shape(column, size)) * np.dtype(_COLUMNS[column][0]).itemsize

    def write(self, stream: BinaryIO, columns: Mapping[str, Array | list[Array]]) -> str:
        """Writes the columns of a block, each an array or several that follow one another, and returns their digest."""
        digest = hashlib.blake2b(digest_size=32)
        for column in self.columns:
            held, written = columns[column], 0
            for piece in held if isinstance(held, list) else [held]:
                raw = np.ascontiguousarray(piece, dtype=_COLUMNS[column][0]).reshape(-1).view(np.uint8).data
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
            return {column: np.zeros(self.shape(column, size), _COLUMNS[column][0]) for column in self.columns}, b""
        opened = os.open(path, os.O_RDONLY)
        try:
            pages = mmap.mmap(opened, skipped + length, access=mmap.ACCESS_COPY, offset=at - skipped)
        finally:
            os.close(opened)
        return self.columns_in(pages, skipped, size), memoryview(pages)[skipped : skipped + length]

    def columns_in(self, buffer: Any, at: int, size: BlockSize) -> dict[str, Array]:
        """The columns of a block that begins at this byte of a buffer."""
        places, found = self.places(size), {}
        for column in self.columns:
            shape, kind = self.shape(column, size), _COLUMNS[column][0]
            found[column] = np.frombuffer(buffer, kind, prod(shape), at + places[column]).reshape(shape)
        return found


def digest_of(raw: bytes | memoryview) -> str:
    """The digest of a block's bytes."""
    return hashlib.blake2b(raw, digest_size=32).hexdigest()


def _padded(length: int) -> int:
    return -(-length // _ALIGNED) * _ALIGNED
