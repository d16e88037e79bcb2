"""The files of a corpus on disk, opened: its words, its names, and its blocks as mapped columns. It chooses no documents.

Every block is compared with its digest when it is first read in a process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.shards.block_layout import digest_of
from securetm.corpus.shards.manifest import MANIFEST, WORDS, Manifest
from securetm.corpus.shards.shard_errors import DamagedShard
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

    def columns(self, block: int) -> dict[str, Array]:
        """The columns of a block, without reading them. Its pages leave memory with the last of these arrays."""
        path, stored = Path(self.shard(block)), self.manifest.blocks[block]
        try:
            columns, raw = self.manifest.layout.mapped(path, self._places[block][1], stored.size)
        except FileNotFoundError as fault:
            raise DamagedShard(str(path), "it is not there") from fault
        except ValueError as fault:
            raise DamagedShard(str(path), "it is shorter than when it was written") from fault
        except OSError as fault:
            raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault
        if block not in self._checked:
            if digest_of(raw) != stored.digest:
                raise DamagedShard(str(path), f"block {block} does not hold what was written")
            self._checked.add(block)
        return columns


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
