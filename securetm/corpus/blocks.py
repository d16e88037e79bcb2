"""Blocks of documents (contracts.DocumentBlock), and how any corpus is cut into blocks.

A block holds a fixed number of documents and ends only between two persons, so that all documents of a person are in one block.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from securetm.contracts import ON_DISK, Array, Keeping, Memory
from securetm.corpus.records import damaged_file
from securetm.data_classes import dataclass
from securetm.errors import CannotWrite, NoSuchPath, SplitOwner, Unreadable
from securetm.private_files import make_folder, writing

_MEMORY = "memory"  # the folder beside the shards


@dataclass(frozen=True, eq=False)
class Block:
    """A block of documents. Pickled, it takes its own documents with it and no others, and none of those on disk."""

    number: int
    documents: Any
    rows: Array | range | None = None  # which of these documents are in the block; None: all
    shard: str = ""

    def __reduce__(self) -> Any:
        return Block, (self.number, self._chosen(), None, self.shard)

    def read(self) -> Any:
        """The documents of the block, in memory; where all are asked for as they were written, their pages are mapped."""
        return self._chosen().read()

    def _chosen(self) -> Any:
        return self.documents if self.rows is None else self.documents.select(self.rows)

    def recall(self, kept: Memory) -> Memory:
        """What was kept: from its file, if it is in one."""
        if ON_DISK not in kept:
            return dict(kept)
        return read_arrays(self._folder() / bytes(kept[ON_DISK]).decode())

    def keep(self, memory: Memory, keeping: Keeping) -> Memory:
        """The same; beside a shard, the name of the file into which it was written. Files that nobody needs are deleted."""
        if not keeping.folder or self.documents.folder is None:
            return memory
        folder = self._folder() / keeping.folder
        path = folder / f"{self.number:05d}-{keeping.version}.npz"
        save_arrays(path, memory)
        for old in (*folder.glob(f"{self.number:05d}-*.npz"), *folder.glob(f".{self.number:05d}-*.part")):
            earlier = old.name.lstrip(".") < path.name  # a later one may be of a worker that was given up
            if earlier and f"{keeping.folder}/{old.name}" not in keeping.needed:
                with suppress(OSError):  # then it is tried again with the next answer
                    old.unlink()
        return {ON_DISK: np.frombuffer(f"{keeping.folder}/{path.name}".encode(), np.uint8)}

    def _folder(self) -> Path:
        folder: Path = self.documents.folder / _MEMORY
        return folder


class HeldInBlocks:
    """Documents in memory. They are one block, unless `block_numbers` gives the block of each."""

    block_numbers: Array | None = None
    folder: ClassVar[None] = None

    def blocks(self) -> Sequence[Block]:
        """The blocks that have a document, by number; of no documents, one empty block."""
        numbers = self.block_numbers
        if numbers is None or not len(numbers):
            return [Block(0, self)]
        return [Block(int(numbers[rows[0]]), self, rows) for rows in places_of_each(numbers)]

    def read(self) -> Self:
        """These documents: they are in memory."""
        return self

    def gathered(self) -> Self:
        """These documents: they are in memory."""
        return self


def places_of_each(numbers: Array) -> list[Array]:
    """The places of each number, the numbers in rising order."""
    if not len(numbers):
        return []
    if (np.diff(numbers) >= 0).all():
        return np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers)) + 1)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def by_person(persons: Array) -> Array:
    """The order in which a corpus is cut into blocks: by each person's first document, and each person's as they were."""
    _, first, member = np.unique(persons, return_index=True, return_inverse=True)
    return np.argsort(first[member], kind="stable")


def numbered(documents: int, size: int, persons: Array | None = None) -> Array:
    """The block of each of so many documents, which are in the order `by_person` gives."""
    if persons is None or not documents:
        return np.arange(documents) // size
    ends = np.append(np.flatnonzero(np.diff(persons)) + 1, documents)  # where each person's documents end
    held = np.diff(ends[persons_of_blocks(np.diff(ends, prepend=0), size) - 1], prepend=0)
    return np.repeat(np.arange(len(held)), held)


def persons_of_blocks(documents: Array, size: int) -> Array:
    """The person after the last one of each block, where so many documents are of each person.

    A block ends with the person that fills it, so it holds `size` documents or the rest of one person's more.
    """
    ends, whole, before = list[int](), np.cumsum(documents), 0
    while not ends or ends[-1] < len(whole):
        ends.append(min(int(np.searchsorted(whole, before + size)) + 1, len(whole)))
        before = int(whole[ends[-1] - 1])
    return np.array(ends)


def check_whole(persons: Array, numbers: Array) -> None:
    """Refuses persons whose documents are in two blocks: two sums would bound them apart."""
    if not len(persons):
        return
    _, member = np.unique(persons, return_inverse=True)
    home = np.zeros(int(member.max()) + 1, dtype=np.int64)
    home[member] = numbers
    if not np.array_equal(home[member], numbers):
        raise SplitOwner()


# ---- files of named arrays, in a zip with checksums and without pickle: what is kept of documents ----------------------


def save_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Writes named arrays for their owner alone to read; the same arrays give the same bytes.

    A reader finds the old file or the new one, never a part of one.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        make_folder(path.parent)
        with writing(beside) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mistakes the arrays for its keywords
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as fault:
        raise CannotWrite(str(path), fault.strerror or type(fault).__name__) from fault
    finally:
        if path.parent.is_dir():
            beside.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file, each compared with its checksum."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except FileNotFoundError as fault:
        raise NoSuchPath(str(path)) from fault
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as fault:
        raise damaged_file(path, "it is not a whole corpus file") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # nothing was written behind it; zipfile compares the checksum with the last byte
            raise zipfile.BadZipFile(name)
        return array
