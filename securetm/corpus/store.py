"""The files of a corpus on disk: its manifest, its words and names, and its blocks as mapped columns.

The manifest is written last, so a folder that has one holds the whole corpus. Its digest covers everything but how the blocks
are spread over files. Every block is compared with its digest when it is first read in a process.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.block_layout import BlockInFile, BlockLayout, BlockSize, damaged_shard, digest_of, documents_alone
from securetm.corpus.records import Dropped
from securetm.errors import Mistake, NoSuchPath, Unreadable
from securetm.private_files import check_private, sync, writing
from securetm.stages import Stages

MANIFEST, WORDS, BUILDING = "corpus.json", "words.json", "building"
FORMAT, VERSION = "securetm corpus", 2


@dataclass(frozen=True)
class BlockEntry:
    """A block in a file: what it holds, and the digest of its bytes."""

    size: BlockSize
    digest: str


@dataclass(frozen=True)
class Manifest:
    """The description of a corpus on disk."""

    name: str
    block_documents: int
    tokeniser: Mapping[str, Any]
    columns: Mapping[str, str]  # the columns that were asked for, by role
    names: tuple[str, ...]  # of label, party, date and person: those that the documents have
    width: int  # of an embedding; 0: there are none
    words: int
    words_digest: str
    read: int  # documents of the source
    dropped: tuple[Dropped, ...]
    blocks: tuple[BlockEntry, ...]
    shards: tuple[int, ...]  # how many blocks each file holds
    digest: str = ""

    @property
    def layout(self) -> BlockLayout:
        """Which columns a block has."""
        return BlockLayout.of(self.names, self.width, counted=True)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return sum(block.size.documents for block in self.blocks)

    @property
    def tokens(self) -> int:
        """How many words all documents have."""
        return sum(block.size.tokens for block in self.blocks)

    def places(self) -> list[tuple[str, int]]:
        """The file of each block, and the byte at which it begins there."""
        found, blocks = [], iter(self.blocks)
        for number, held in enumerate(self.shards):
            at = 0
            for _ in range(held):
                found.append((shard_name(number), at))
                at += self.layout.length(next(blocks).size)
        return found

    def sealed(self) -> Manifest:
        """The same with the digest of all that it says, but for the files in which the blocks lie."""
        said = {name: value for name, value in self._plain().items() if name not in ("digest", "shards")}
        text = json.dumps([FORMAT, VERSION, said], sort_keys=True, separators=(",", ":"))
        return replace(self, digest=hashlib.blake2b(text.encode(), digest_size=32).hexdigest())

    def write(self, folder: Path) -> None:
        """Writes it: from now on the folder holds a corpus."""
        write_whole(folder / MANIFEST, {"format": FORMAT, "version": VERSION, **self._plain()})

    def facts(self, folder: Path) -> dict[str, Any]:
        """What people are told of it, ready for JSON. It holds no word and no name."""
        largest = max(self.layout.length(block.size) for block in self.blocks)
        return {
            "folder": str(folder),
            "name": self.name,
            "documents": self.documents,
            "left_out": self.read - self.documents,
            "words": self.words,
            "tokens": self.tokens,
            "columns": [*self.names, *(["embedding"] if self.width else [])],
            "block_documents": self.block_documents,
            "blocks": len(self.blocks),
            "shards": len(self.shards),
            "bytes": sum(self.layout.length(block.size) for block in self.blocks),
            "largest_block_bytes": largest,
            "tokeniser": {name: shortened(value) for name, value in self.tokeniser.items()},
            "digest": self.digest,
        }

    def _plain(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["dropped"] = [asdict(one) for one in self.dropped]
        found["blocks"] = [[*asdict(block.size).values(), block.digest] for block in self.blocks]
        return {**found, "names": list(self.names), "shards": list(self.shards)}

    @classmethod
    def read_from(cls, folder: Path) -> Manifest:
        """Reads the manifest of a folder, checked against itself and against the sizes and the modes of the files."""
        found = _read(folder)
        path = str(folder / MANIFEST)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise _no_corpus(folder)
        if found.get("version") != VERSION:
            raise other_version(path, int(found.get("version", -1)), VERSION)
        try:
            manifest = cls._of(found)
            whole = manifest.sealed().digest == manifest.digest and sum(manifest.shards) == len(manifest.blocks)
        except (KeyError, TypeError, ValueError) as fault:
            raise damaged_shard(path, "its parts do not fit together") from fault
        if not whole:
            raise damaged_shard(path, "it does not say what it said when it was written")
        manifest._check_files(folder)
        return manifest

    @classmethod
    def _of(cls, found: Mapping[str, Any]) -> Manifest:
        taken = {name: found[name] for name in cls.__dataclass_fields__}
        taken["dropped"] = tuple(Dropped(**one) for one in taken["dropped"])
        taken["blocks"] = tuple(BlockEntry(BlockSize(*map(int, sizes)), str(digest)) for *sizes, digest in taken["blocks"])
        return cls(**{**taken, "names": tuple(taken["names"]), "shards": tuple(map(int, taken["shards"]))})

    def _check_files(self, folder: Path) -> None:
        lengths: dict[str, int] = {}
        for (name, at), block in zip(self.places(), self.blocks, strict=True):
            lengths[name] = at + self.layout.length(block.size)
        for name, length in lengths.items():
            path = folder / name
            if not path.is_file():
                raise damaged_shard(str(path), "it is not there")
            if (there := path.stat().st_size) != length:
                raise damaged_shard(str(path), f"it has {there:,} bytes where {length:,} were written")
            check_private(path)


def shard_name(number: int) -> str:
    """The file of a shard."""
    return f"{number:05d}.shard"


def is_stored(path: Path) -> bool:
    """Whether a path is the folder of a corpus on disk, also of one whose building has not ended."""
    return path.is_dir() and ((path / MANIFEST).is_file() or (path / BUILDING).is_dir())


def write_whole(path: Path, content: Any) -> bytes:
    """Writes JSON in ASCII, whole or not at all, and returns its bytes."""
    raw = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    beside = path.with_name(path.name + ".unfinished")
    with writing(beside) as stream:
        stream.write(raw)
    sync(beside)
    beside.replace(path)
    return raw


def shortened(value: Any) -> Any:
    """A list of words by their number."""
    return f"{len(value)} words" if isinstance(value, list | tuple) else value


def _read(folder: Path) -> Any:
    path = folder / MANIFEST
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as fault:
        if not folder.exists():
            raise NoSuchPath(str(folder)) from fault
        raise _no_corpus(folder) from fault
    except (ValueError, RecursionError) as fault:
        raise damaged_shard(str(path), "it is no JSON") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault


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
            if path.exists():
                check_private(path)
        known = _read_words(folder, manifest)
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
                raise damaged_shard(str(path), f"block {block} does not hold what was written")
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
        raise damaged_shard(path, "it is not there") from fault
    except ValueError as fault:
        raise damaged_shard(path, "it is shorter than when it was written") from fault
    except OSError as fault:
        raise Unreadable(path, fault.strerror or type(fault).__name__) from fault


def opened(folder: Path) -> CorpusStore:
    """The corpus of a folder that `securetm corpus build` wrote, opened once in a process."""
    manifest = Manifest.read_from(folder)
    return store_at(str(folder.resolve()), manifest.digest, manifest.shards)


@lru_cache(maxsize=8)
def store_at(folder: str, digest: str, shards: tuple[int, ...]) -> CorpusStore:
    """The corpus of that folder, opened once in a process. Refuses another corpus than the one of this digest."""
    store = CorpusStore.open(Path(folder))
    if store.identity != (folder, digest, shards):
        raise damaged_shard(str(Path(folder) / MANIFEST), "another corpus was built there meanwhile")
    return store


def _read_words(folder: Path, manifest: Manifest) -> dict[str, list[str]]:
    path = folder / WORDS
    try:
        raw = path.read_bytes()
    except FileNotFoundError as fault:
        raise damaged_shard(str(path), "it is not there") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault
    if digest_of(raw) != manifest.words_digest:
        raise damaged_shard(str(path), "it does not hold the words that were written")
    return json.loads(raw)  # type: ignore[no-any-return]


def _no_corpus(folder: Path) -> Mistake:
    if (folder / BUILDING).is_dir():
        return Mistake(
            "{path} holds a corpus whose building has not ended",
            hint="give the same `securetm corpus build` again: it goes on where it stopped",
            path=str(folder),
        )
    return Mistake(
        "{path} holds no corpus that `securetm corpus build` wrote",
        hint="build one (securetm corpus build SOURCE --out {path}), or give the documents themselves with --corpus",
        path=str(folder),
    )


def other_version(path: str, found: int, known: int) -> Mistake:
    """A file of another version of its format."""
    return Mistake(
        "{path} was written in version {found} of its format; this securetm reads version {known}",
        hint="write it again with this securetm, or read it with the one that wrote it",
        path=path,
        found=found,
        known=known,
    )
