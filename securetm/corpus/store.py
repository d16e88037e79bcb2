"""The files of a corpus on disk: its manifest, its words and names, and its blocks as mapped columns.

The manifest is written last, so a folder that has one holds the whole corpus. Its digest covers everything but how the blocks
are spread over files. Every block is compared with its digest when it is first read in a process.

A block is plain little-endian arrays, one after the other. It is no format of Arrow's: a writer of another version may choose
other bytes for the same table, and the digest of a corpus must not depend on that. A mini-batch from a large corpus finds
nearly every document in another block, so a few documents are read from their files without mapping these.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from securetm.contracts import Array
from securetm.corpus.document_names import DIGEST
from securetm.corpus.records import Dropped
from securetm.data_classes import asdict, dataclass, field, replace
from securetm.errors import Mistake, NoSuchPath, Unreadable
from securetm.extras import sparse
from securetm.private_files import check_private, sync, writing
from securetm.stages import Stages

# ---- one block --------------------------------------------------------------------------------------------------------


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

    @lru_cache(maxsize=4_096)  # noqa: B019 - a layout is a value, and equal ones share what was computed
    def places(self, size: BlockSize) -> Mapping[str, tuple[int, int]]:
        """Where each column begins, in bytes from the beginning of the block, and how many bytes an entry of it takes."""
        found, at = {}, 0
        for column in self.columns:
            found[column] = at, (width := self.kind(column).itemsize)
            at += _padded(_entries(column, size) * width)
        return found

    def length(self, size: BlockSize) -> int:
        """The bytes of a whole block."""
        return sum(_padded(_entries(column, size) * self.kind(column).itemsize) for column in self.columns)

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
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), skipped + length, access=mmap.ACCESS_COPY, offset=at - skipped)
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
    if "starts" in columns:
        begin, end = columns["starts"][rows], columns["starts"][rows + 1]
        found["starts"] = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int32)
        found |= {name: runs_of(columns[name], begin, end) for name in ("words", "times")}
    return found


def joined_documents(parts: Sequence[BlockColumns]) -> dict[str, Array]:
    """All documents of these parts, one after the other."""
    if len(parts) == 1:
        return dict(parts[0])
    plain = (*BY_DOCUMENT, "tokens", "words", "times")
    found = {name: np.concatenate([part[name] for part in parts]) for name in plain if name in parts[0]}

    def shifted(name: str, by: str, last: int | None = None) -> Array:
        before = np.cumsum([0, *(len(part[by]) for part in parts[:-1])])
        return np.concatenate([part[name][:last] + shift for part, shift in zip(parts, before, strict=True)])

    found |= {name: shifted(name, "tokens") for name in ("token_ends", "sentence_ends")}
    if "starts" in parts[0]:
        found["starts"] = np.append(shifted("starts", "words", -1), len(found["words"])).astype(np.int32)
    return found


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
        end_of = lambda sentence: struct.unpack("<q", self.raw("sentence_ends", sentence, sentence + 1))[0]  # noqa: E731
        return bisect_right(range(count), place, key=end_of)


def documents_alone(wanted: Iterable[tuple[BlockInFile, int]], layout: BlockLayout) -> dict[str, Array]:
    """The columns of documents, each named by its block and its row there, in that order."""
    plain, counted = [column for column in BY_DOCUMENT if column in layout.columns], "starts" in layout.columns
    taken: dict[str, list[bytes]] = {column: [] for column in (*plain, "tokens", *(("words", "times") if counted else ()))}
    token_ends, starts, sentences = [0], [0], [np.empty(0, np.int64)]
    for block, row in wanted:
        for column in plain:
            taken[column].append(block.raw(column, row, row + 1))
        start, stop = struct.unpack(
            "<qq", block.raw("token_ends", row - 1, row + 1) if row else bytes(8) + block.raw("token_ends", 0, 1)
        )
        taken["tokens"].append(block.raw("tokens", start, stop))
        sentences.append(block.sentence_ends(start, stop) + (token_ends[-1] - start))
        token_ends.append(token_ends[-1] + stop - start)
        if counted:
            begin, end = struct.unpack("<ii", block.raw("starts", row, row + 2))
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


# ---- the whole corpus -------------------------------------------------------------------------------------------------


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
        with _faults_named(str(folder / WORDS)):
            raw = (folder / WORDS).read_bytes()
        if digest_of(raw) != manifest.words_digest:
            raise damaged_shard(str(folder / WORDS), "it does not hold the words that were written")
        known = json.loads(raw)
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
