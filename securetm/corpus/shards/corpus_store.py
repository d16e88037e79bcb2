"""The files of a corpus on disk, opened: its words, its names, and its blocks as mapped columns. It chooses no documents.

Every block is compared with its digest when it is first read in a process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.shards.block_layout import digest_of
from securetm.corpus.shards.manifest import MANIFEST, WORDS, Manifest
from securetm.corpus.shards.shard_errors import DamagedShard
from securetm.corpus.shards.single_documents import BlockInFile, documents_alone
from securetm.errors import Unreadable
from securetm.private_files import check_private
from securetm.stages import Stages


@dataclass(eq=False)
class CorpusStore:
    """An opened corpus on disk. Pickled, it takes only its path with it."""

    folder: Path
    manifest: Manifest
    vocabulary: tuple[str, ...] = field(repr=False)
    names: Mapping[str, Array] = field(repr=False)  # of label, party and date: the names by number
    _checked: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def open(cls, folder: Path) -> CorpusStore:
        """Opens a folder that `securetm corpus build` wrote, and checks all but the documents."""
        folder = folder.resolve()
        manifest = Manifest.read_from(folder)
        for path in (folder, folder / MANIFEST, folder / WORDS):
            _check_private(path)
        known = _words(folder, manifest)
        names = {role: np.array(known[role], dtype=np.str_) for role in manifest.names if role != "person"}
        return cls(folder, manifest, tuple(known["vocabulary"]), names)

    def __reduce__(self) -> Any:
        return store_at, self.identity

    @property
    def identity(self) -> tuple[str, str, tuple[int, ...]]:
        """The folder, the digest of what is in it, and how it is spread over files."""
        return str(self.folder), self.manifest.digest, self.manifest.shards

    @cached_property
    def starts(self) -> Array:
        """The number of the first document of each block, and of all documents."""
        return np.cumsum([0, *(block.size.documents for block in self.manifest.blocks)])

    def block_of(self, row: int) -> int:
        """The block of the document with this number."""
        return int(np.searchsorted(self.starts, row, side="right")) - 1

    def whole_block(self, row: int) -> range:
        """The numbers of all documents in the block of that one."""
        block = self.block_of(row)
        return range(int(self.starts[block]), int(self.starts[block + 1]))

    @cached_property
    def _places(self) -> list[tuple[str, int]]:
        return self.manifest.places()

    def shard(self, block: int) -> str:
        """The file in which a block lies."""
        return str(self.folder / self._places[block][0])

    def verify(self, stages: Stages) -> None:
        """Compares every block with its digest."""
        stages.stage("reading blocks", len(self.manifest.blocks))
        for block in range(len(self.manifest.blocks)):
            self._checked.discard(block)
            self.columns(block)
            stages.step(block + 1)

    def alone(self, blocks: Array, rows: Array) -> dict[str, Array]:
        """The columns of documents, each named by its block and its row there: read without mapping their blocks."""
        for block in set(blocks.tolist()) - self._checked:
            self.columns(block)
        layout, numbers = self.manifest.layout, blocks.tolist()
        with ExitStack() as files:
            opened = {shard: files.enter_context(_file(shard)) for shard in {self.shard(block) for block in numbers}}
            found = {block: self._in_file(block, opened) for block in set(numbers)}
            return documents_alone(((found[block], row) for block, row in zip(numbers, rows.tolist(), strict=True)), layout)

    def _in_file(self, block: int, opened: Mapping[str, int]) -> BlockInFile:
        shard = self.shard(block)
        return BlockInFile(shard, opened[shard], self._places[block][1], self.manifest.layout, self.manifest.blocks[block].size)

    def columns(self, block: int) -> dict[str, Array]:
        """The columns of a block, without reading them. Its pages leave memory with the last of these arrays."""
        path, stored = Path(self.shard(block)), self.manifest.blocks[block]
        with _faults_named(str(path)):
            columns, raw = self.manifest.layout.mapped(path, self._places[block][1], stored.size)
        if block not in self._checked:
            if digest_of(raw) != stored.digest:
                raise DamagedShard(str(path), f"block {block} does not hold what was written")
            self._checked.add(block)
        return columns


@contextmanager
def _file(path: str) -> Iterator[int]:
    with _faults_named(path):
        opened = os.open(path, os.O_RDONLY)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _faults_named(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as fault:
        raise DamagedShard(path, "it is not there") from fault
    except ValueError as fault:
        raise DamagedShard(path, "it is shorter than when it was written") from fault
    except OSError as fault:
        raise Unreadable(path, fault.strerror or type(fault).__name__) from fault


@lru_cache(maxsize=8)
def store_at(folder: str, digest: str, shards: tuple[int, ...]) -> CorpusStore:
    """The corpus of that folder, opened once in a process. Refuses another corpus than the one of this digest."""
    store = CorpusStore.open(Path(folder))
    if store.identity != (folder, digest, shards):
        raise DamagedShard(str(Path(folder) / MANIFEST), "another corpus was built there meanwhile")
    return store


def _words(folder: Path, manifest: Manifest) -> dict[str, list[str]]:
    path = folder / WORDS
    try:
        raw = path.read_bytes()
    except FileNotFoundError as fault:
        raise DamagedShard(str(path), "it is not there") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault
    if digest_of(raw) != manifest.words_digest:
        raise DamagedShard(str(path), "it does not hold the words that were written")
    return json.loads(raw)  # type: ignore[no-any-return]


def _check_private(path: Path) -> None:
    if path.exists():
        check_private(path)
