"""What is known of a stored corpus without reading its documents: how many they are, their blocks, their digest.

The manifest is written last, so a folder that has one holds the whole corpus. The digest covers everything but how the blocks
are spread over files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from securetm.corpus.corpus_errors import OtherVersion
from securetm.corpus.dropped import Dropped
from securetm.corpus.shards.block_layout import BlockLayout, BlockSize
from securetm.corpus.shards.shard_errors import DamagedShard, NoStoredCorpus, NotBuilt
from securetm.errors import NoSuchPath, Unreadable
from securetm.private_files import check_private, sync, writing

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
            "tokeniser": {name: _short(value) for name, value in self.tokeniser.items()},
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
            raise NoStoredCorpus(str(folder))
        if found.get("version") != VERSION:
            raise OtherVersion(path, int(found.get("version", -1)), VERSION)
        try:
            manifest = cls._of(found)
            whole = manifest.sealed().digest == manifest.digest and sum(manifest.shards) == len(manifest.blocks)
        except (KeyError, TypeError, ValueError) as fault:
            raise DamagedShard(path, "its parts do not fit together") from fault
        if not whole:
            raise DamagedShard(path, "it does not say what it said when it was written")
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
                raise DamagedShard(str(path), "it is not there")
            if (there := path.stat().st_size) != length:
                raise DamagedShard(str(path), f"it has {there:,} bytes where {length:,} were written")
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


def _short(value: Any) -> Any:
    return f"{len(value)} words" if isinstance(value, list | tuple) else value


def _read(folder: Path) -> Any:
    path = folder / MANIFEST
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError as fault:
        if not folder.exists():
            raise NoSuchPath(str(folder)) from fault
        raise (NotBuilt if (folder / BUILDING).is_dir() else NoStoredCorpus)(str(folder)) from fault
    except (ValueError, RecursionError) as fault:
        raise DamagedShard(str(path), "it is no JSON") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault
