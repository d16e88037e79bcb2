"""Writes a corpus on disk from documents that come one at a time. Memory is bounded by a setting, and not by the documents.

First the source is read once, and its documents go into parts with words by number of first appearance. Beside a part lies what
it added to the words and names, so a build that was killed goes on after the last whole part. Then blocks are made of the parts
one at a time, with words in alphabetical order. The same source and settings give the same bytes, however often the build was
stopped. What stays in memory is the vocabulary, the names, and a few bytes for each person, which is refused where it is too
much. What is another's in the folder is refused, and never deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import resource
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.blocks import persons_of_blocks
from securetm.corpus.building import CorpusBuilder, Embed, counted_by_reason, in_alphabetical_order, no_documents, repeated_ids
from securetm.corpus.document_names import copy_numbers
from securetm.corpus.held_documents import counted_tokens
from securetm.corpus.readers import files_of, records_of
from securetm.corpus.records import Columns
from securetm.corpus.store import (
    BUILDING,
    MANIFEST,
    NAMES,
    WORDS,
    BlockColumns,
    BlockEntry,
    BlockLayout,
    BlockSize,
    Manifest,
    chosen_documents,
    digest_of,
    joined_documents,
    shard_name,
    shortened,
    size_of_block,
    write_whole,
)
from securetm.corpus.tokeniser import Tokeniser
from securetm.data_classes import asdict, dataclass, field
from securetm.errors import BadSetting, CannotWrite, Mistake
from securetm.private_files import private_file, private_folder, sync, writing
from securetm.stages import Stages, Unwatched

USUAL = 1024  # MB of a process, where nothing is said
_LEAST = 48  # MB for documents
_STATUS = Path("/proc/self/statm")


def left_for_documents(megabytes: int | None, source: str, columns: Columns) -> int:
    """The MB that documents of this source may take in a process that may take so many in all.

    One document is read first, because a reader of tables takes most of its memory then.
    A sentence model that makes embeddings is not counted: it is loaded later.
    """
    next(records_of(source, columns)[1], None)
    if _STATUS.is_file():
        taken = int(_STATUS.read_text().split()[1]) * resource.getpagesize() >> 20
    else:
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # the peak so far, which is no less
    if megabytes is None:  # nobody asked for a bound that a large process would be past
        return max(USUAL - taken, _LEAST)
    if megabytes - taken < _LEAST:
        least = taken + _LEAST
        raise BadSetting("securetm corpus build", "--memory", str(megabytes), f"must be at least {least}: {taken} MB are taken")
    return megabytes - taken


# ---- the folder that a build fills ------------------------------------------------------------------------------------

_SOURCE, _LOCK = "source.json", "lock"
_BEGUN = {_LOCK, _SOURCE, f"{_SOURCE}.unfinished"}  # what a build has before it kept anything
_OURS = (BUILDING, MANIFEST, WORDS, f"{WORDS}.unfinished", f"{MANIFEST}.unfinished")


def _check_free(folder: Path) -> None:
    """Refuses a folder with a finished corpus, or with anything that no build put there."""
    building, held = folder / BUILDING, [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if building.is_dir():
        held = [name for name in held if name not in _OURS and not name.endswith(".shard")]
        if not (building / _SOURCE).is_file():
            held += {path.name for path in building.iterdir()} - {_LOCK, f"{_SOURCE}.unfinished"}
    elif MANIFEST in held:
        raise _taken(folder, "a finished corpus")
    if held:
        raise _taken(folder, "other files")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Makes the folders. Refuses while another process builds there. What fails before it kept anything leaves none."""
    building = folder / BUILDING
    missing = [one for one in (building, folder) if not one.exists()]
    private_folder(folder)
    private_folder(building)
    private_file(building / _LOCK)
    with (building / _LOCK).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as busy:
            raise _taken(folder, "a corpus that another process is building") from busy
        try:
            yield
        except BaseException:
            if building in missing and not {path.name for path in building.iterdir()} - _BEGUN:
                _clear(building)
                if folder in missing:
                    with suppress(OSError):  # somebody put something there meanwhile
                        folder.rmdir()
            raise


def _check_same(folder: Path, source: str, settings: Mapping[str, Any]) -> None:
    """Refuses another source or other settings than those that the build began with; a new build notes them."""
    files = hashlib.blake2b(digest_size=16)  # of the names, sizes and times of the files that documents are read from
    for file in files_of(source):
        found = file.stat()
        files.update(f"{file.name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    path, now = folder / BUILDING / _SOURCE, json.loads(json.dumps({"files": files.hexdigest(), "settings": settings}))
    if not path.is_file():
        write_whole(path, now)
        return
    try:
        then = json.loads(path.read_bytes())
        first = next((name for name, value in now["settings"].items() if then["settings"].get(name) != value), None)
        same_files = then["files"] == now["files"]
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise _taken(folder, "a build whose settings are damaged") from fault
    if first is not None:
        raise Mistake(
            "the build in {path} began with {setting} = {found}, and now {wanted} is asked for",
            hint="give the same settings as then, and it goes on; or delete {path}, or take another folder with --out, to "
            "begin anew",
            path=str(folder),
            setting=first,
            found=str(shortened(then["settings"].get(first))),
            wanted=str(shortened(now["settings"][first])),
        )
    if not same_files:
        raise Mistake(
            "{source} is not what it was when the build in {path} began: a file has another name, size or time of change",
            hint="delete {path} and build anew; what was built of the earlier documents is still there, and is no whole corpus",
            source=source,
            path=str(folder),
        )


def _taken(folder: Path, what: str) -> Mistake:
    return Mistake(
        "{path} holds {what}",
        hint="take a folder that is not there yet with --out, or delete this one first",
        path=str(folder),
        what=what,
    )


def _clear(building: Path) -> None:
    """Deletes what only the build needed; what names the build goes last, so that this can be cut off and go on."""
    last = (building / _SOURCE, building / _LOCK)
    for path in (*(one for one in building.iterdir() if one not in last), *last):
        path.unlink(missing_ok=True)
    building.rmdir()


# ---- parts: documents as they were read -------------------------------------------------------------------------------

_BYTES_OF_NAME = 96  # in memory while it is compared


@dataclass
class Persons:
    """The order of persons by their first document, and how many documents each has."""

    _places: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by the person's number; -1: not met
    documents: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by place

    def placed(self, numbers: Array) -> Array:
        """The places of these documents' persons, who are counted."""
        more = max(int(numbers.max(initial=-1)) + 1 - len(self._places), 0)
        self._places = np.concatenate([self._places, np.full(more, -1)])
        met, first = np.unique(numbers, return_index=True)
        met = met[np.argsort(first)]
        new = met[self._places[met] < 0]
        self._places[new] = np.arange(len(self.documents), len(self.documents) + len(new))
        places = self.places(numbers)
        self.documents = np.concatenate([self.documents, np.zeros(len(new), dtype=np.int64)])
        self.documents += np.bincount(places, minlength=len(self.documents))
        return places

    def places(self, numbers: Array) -> Array:
        """The places of persons that were met before."""
        return np.asarray(self._places[numbers])


class BuildingParts:
    """The parts of a build in their folder, and the builder that reads the documents in them."""

    def __init__(self, folder: Path, builder: CorpusBuilder) -> None:
        self._folder, self.builder = folder, builder
        self.persons, self.dropped, self.sizes = Persons(), Counter[tuple[str, ...]](), list[BlockSize]()
        self.width = 0  # of an embedding
        self._copies: dict[int, list[tuple[Array, Array]]] = {}  # by part: later copies, and their numbers
        self._words, self._names = 0, dict.fromkeys(NAMES, 1)  # how many are in the parts

    def add(self) -> None:
        """Writes a part of the builder's documents, and then what it added to the words and names."""
        builder, number = self.builder, len(self.sizes)
        columns = builder.taken()
        size = size_of_block(columns)
        if size.documents:
            self.width = columns["embeddings"].shape[1] if "embeddings" in columns else 0
            if builder.persons_known:
                columns = chosen_documents(columns, np.argsort(self.persons.placed(columns["person"]), kind="stable"))
        with writing(self._part(number)) as stream:
            digest = self._layout.write(stream, columns)
        sync(self._part(number))
        facts = {**asdict(size), "digest": digest, "width": self.width, "read": builder.documents}
        facts |= {"given_width": builder.width, "persons": builder.persons_known, "ids": builder.ids_known}
        names = {name: list(builder.names[name])[self._names[name] :] for name in NAMES}
        facts |= {"words": list(builder.lexicon.words)[self._words :], "names": names}
        dropped = [[*why, n] for why, n in sorted(builder.dropped.items())]
        write_whole(self._part(number, "json"), {**facts, "dropped": dropped})
        self._note(size, builder.dropped)

    def resume(self) -> None:
        """Gives the builder what all whole parts hold, and forgets the first part that is not whole and those after it."""
        builder = self.builder
        while (facts := self._whole(len(self.sizes))) is not None:
            for known, added in (
                (builder.lexicon.words, facts["words"]),
                *((builder.names[name], facts["names"][name]) for name in NAMES),
            ):
                known.update({one: number for number, one in enumerate(added, len(known))})
            builder.documents, builder.width = int(facts["read"]), facts["given_width"]
            builder.persons_known, builder.ids_known = bool(facts["persons"]), bool(facts["ids"])
            self.width = int(facts["width"])
            size = BlockSize(facts["documents"], facts["tokens"], facts["sentences"])
            if builder.persons_known:
                columns = self._mapped(len(self.sizes), size)
                self.persons.placed(columns["person"][np.argsort(columns["rows"])])  # in the order of the source
            self._note(size, Counter({tuple(why): int(n) for *why, n in facts["dropped"]}))

    def column(self, number: int) -> dict[str, Array]:
        """The columns of one part."""
        columns = self._mapped(number, self.sizes[number])
        for places, numbers in self._copies.get(number, ()):
            columns["copies"][places] = numbers  # in memory: the file stays as it is
        return columns

    def number_copies(self, bytes_at_once: int) -> int:
        """Numbers the documents that are called alike, in the order of the source. Returns how many are not the first such one.

        Names are compared a share of them at a time, so that as many as fit are in memory.
        """
        documents = sum(size.documents for size in self.sizes)
        passes = 1 + documents * _BYTES_OF_NAME // bytes_at_once
        return sum(self._number_share(share, passes) for share in range(passes if documents else 0))

    def _number_share(self, share: int, passes: int) -> int:
        """Those whose names have this remainder."""
        where, rows, digests = [], [], []
        for number, size in enumerate(self.sizes):
            columns = self._mapped(number, size)
            mine = np.flatnonzero(np.ascontiguousarray(columns["digests"]).view("<u8")[:, 0] % np.uint64(passes) == share)
            where.append(np.column_stack([np.full(len(mine), number), mine]))
            rows.append(columns["rows"][mine])
            digests.append(columns["digests"][mine])
        in_source_order = np.argsort(np.concatenate(rows))
        found = copy_numbers(np.concatenate(digests)[in_source_order])
        later = np.flatnonzero(found)
        parts = np.concatenate(where)[in_source_order[later]]
        for number in np.unique(parts[:, 0]):
            own = parts[:, 0] == number
            self._copies.setdefault(int(number), []).append((parts[own, 1], found[later[own]]))
        return len(later)

    def _note(self, size: BlockSize, dropped: Counter[tuple[str, ...]]) -> None:
        self.sizes.append(size)
        self.dropped += dropped
        self._words = len(self.builder.lexicon.words)
        self._names = {name: len(self.builder.names[name]) for name in NAMES}

    @property
    def _layout(self) -> BlockLayout:
        return BlockLayout.of(NAMES, self.width, counted=False)

    def _part(self, number: int, ending: str = "part") -> Path:
        return self._folder / f"{number:05d}.{ending}"

    def _mapped(self, number: int, size: BlockSize) -> dict[str, Array]:
        return self._layout.mapped(self._part(number), 0, size)[0]

    def _whole(self, number: int) -> dict[str, Any] | None:
        """The facts of a part, if it was written whole and is as it was."""
        try:
            facts = json.loads(self._part(number, "json").read_bytes())
            return facts if digest_of(self._part(number).read_bytes()) == facts["digest"] else None
        except (OSError, ValueError):
            return None


# ---- blocks made of parts ---------------------------------------------------------------------------------------------

_RUN = 1 << 17  # words of a run
BYTES_OF_RUN = 64 * _RUN  # in memory while a run is counted


def runs_of_documents(columns: BlockColumns, rows: Array) -> Iterator[dict[str, Array]]:
    """The documents with these row numbers, in that order, copied a run at a time."""
    whole = np.cumsum(np.diff(columns["token_ends"], prepend=0)[rows])
    first = 0
    while first < len(rows):
        before = int(whole[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(whole, before + _RUN, side="right")))
        yield chosen_documents(columns, rows[first:last])
        first = last


_BYTES_OF_TOKEN, _BYTES_OF_SENTENCE, _BYTES_OF_DOCUMENT = 12, 8, 96  # of a block in memory


class UnwrittenBlocks:
    """Blocks of so many documents; with persons, documents are in the order of each person's first one, and none is divided.

    A corpus of one block keeps the order of its source.
    """

    def __init__(self, parts: BuildingParts, place: Array, block_documents: int) -> None:
        self._parts, self._place, self._by_person = parts, place, parts.builder.persons_known
        documents = [size.documents for size in parts.sizes]
        if self._by_person:
            ends = np.append(0, persons_of_blocks(parts.persons.documents, block_documents))
            self._bounds = [np.searchsorted(self._places(number), ends) for number in range(len(documents))]
        else:  # of each part: where the documents of each block begin and end
            ends = np.append(np.arange(0, sum(documents), block_documents), sum(documents))
            begins = np.cumsum([0, *documents[:-1]])
            self._bounds = [np.clip(ends - before, 0, held) for before, held in zip(begins, documents, strict=True)]
        self._blocks = len(ends) - 1

    def __len__(self) -> int:
        return self._blocks

    def made(self, block: int) -> tuple[BlockSize, dict[str, Array | list[Array]]]:
        """The size of a block and its columns: each the arrays of short runs of documents, words by their alphabet.

        So no more is in memory than the block itself and one run.
        """
        size, columns = BlockSize(0, 0, 0, 0), defaultdict[str, Any](list)
        for run in self._in_person_order(block) if self._by_person else self._runs(block):
            tokens = self._place[run["tokens"]]
            counts = counted_tokens(tokens, run["token_ends"], len(self._place))
            starts = counts.indptr[1 if size.documents else 0 :] + size.nonzeros
            ends = {name: run[name] + size.tokens for name in ("token_ends", "sentence_ends")}
            counted = {"starts": starts.astype(np.int32), "words": counts.indices, "times": counts.data}
            for name, piece in {**run, **ends, "tokens": tokens, **counted}.items():
                columns[name].append(piece)
            size = BlockSize(
                size.documents + len(run["rows"]),
                size.tokens + len(tokens),
                size.sentences + len(run["sentence_ends"]),
                size.nonzeros + len(counts.data),
            )
        return size, columns

    def _runs(self, block: int) -> Iterator[dict[str, Array]]:
        for number, first, last in self._pieces(block):
            yield from runs_of_documents(self._parts.column(number), np.arange(first, last))

    def _in_person_order(self, block: int) -> Iterator[dict[str, Array]]:
        held = joined_documents(list(self._runs(block)))
        by = held["rows"] if self._blocks == 1 else self._parts.persons.places(held["person"])
        yield from runs_of_documents(held, np.argsort(by, kind="stable"))

    def check_room(self, block: int, megabytes: int) -> None:
        """Refuses a block that takes more memory than allowed, before it is made."""
        documents = tokens = sentences = 0
        for number, first, last in self._pieces(block):
            columns, size = self._parts.column(number), self._parts.sizes[number]
            ends = columns["token_ends"]
            own = int(ends[last - 1]) - (int(ends[first - 1]) if first else 0)
            documents, tokens = documents + last - first, tokens + own
            sentences += size.sentences * own // max(size.tokens, 1)
        each = _BYTES_OF_DOCUMENT + 4 * self._parts.width
        bytes_ = documents * each + tokens * _BYTES_OF_TOKEN + sentences * _BYTES_OF_SENTENCE
        needed = (bytes_ * (2 if self._by_person else 1) + BYTES_OF_RUN) >> 20
        if needed > megabytes:
            raise Mistake(
                "a block of {documents} documents takes {needed} MB while it is built, and --memory leaves {megabytes} MB "
                "for it",
                hint="give the same command with more --memory, and it goes on; or build anew with fewer --block-documents",
                documents=documents,
                needed=needed,
                megabytes=megabytes,
            )

    def _pieces(self, block: int) -> list[tuple[int, int, int]]:
        """The parts that hold documents of the block, and where these begin and end there."""
        found = [(number, int(bounds[block]), int(bounds[block + 1])) for number, bounds in enumerate(self._bounds)]
        return [(number, first, last) for number, first, last in found if first < last]

    def _places(self, number: int) -> Array:
        return self._parts.persons.places(self._parts.column(number)["person"])


# ---- the build --------------------------------------------------------------------------------------------------------

_SHARD_BLOCKS = 16  # blocks in a file, where nobody says how many files there are
_BYTES_OF_FORM, _BYTES_OF_WORD = 200, 220  # bytes that a remembered raw form of a word takes, and a word or a name
# Shares of the memory: for documents that are read, for raw forms of words, and for words and names.
_SHARE_READ, _SHARE_OF_FORMS, _SHARE_OF_WORDS = 0.25, 0.2, 0.5


@dataclass(frozen=True)
class CorpusBuild:
    """One build: its source, its settings, and the folder that it fills."""

    source: str
    folder: Path
    columns: Columns = field(default_factory=Columns)
    tokeniser: Tokeniser = field(default_factory=Tokeniser)
    block_documents: int = BLOCK_DOCUMENTS
    shards: int = 0  # files; 0: as many as there are 16 blocks
    megabytes: int = USUAL
    embed: Embed | None = None
    embedded_as: str = ""  # names the embeddings that `embed` makes
    stages: Stages = field(default_factory=Unwatched)

    def __post_init__(self) -> None:
        for name, least in (("block_documents", 1), ("shards", 0), ("megabytes", 1)):
            if getattr(self, name) < least:
                raise BadSetting("corpus build", name, str(getattr(self, name)), f"must be at least {least}")
        if self.tokeniser.settings() is None:
            raise BadSetting("corpus build", "words", "a function", "cannot be kept with the corpus: use other settings")

    def run(self) -> Manifest:
        """Builds the corpus, or goes on with a build of the same source and settings that was stopped."""
        files_of(self.source)  # a source that is not there is refused before a folder is made
        _check_free(self.folder)
        try:
            with _alone(self.folder):
                _check_same(self.folder, self.source, self._settings())
                finished = (self.folder / MANIFEST).is_file()  # and only the end of its build was cut off
                manifest = Manifest.read_from(self.folder) if finished else self._built()
                _clear(self._building)
        except OSError as fault:
            raise CannotWrite(str(self.folder), fault.strerror or type(fault).__name__) from fault
        return manifest

    def _built(self) -> Manifest:
        name, parts = self._read()
        _check_same(self.folder, self.source, self._settings())  # it may have changed while it was read
        builder = parts.builder
        if not sum(size.documents for size in parts.sizes):
            raise no_documents(self.source, builder.documents)
        builder.lexicon.clear()  # of raw forms, which nobody asks for any more
        copies = parts.number_copies(int(_SHARE_READ * (self.megabytes << 20)))
        if builder.ids_known and copies:
            raise repeated_ids(self.source, copies)
        vocabulary, place = in_alphabetical_order(builder.lexicon.words)
        names = tuple(one for one in NAMES if len(builder.names[one]) > 1)
        stored, shards = self._write_shards(UnwrittenBlocks(parts, place, self.block_documents), names, parts)
        known = {one: list(builder.names[one]) for one in names if one != "person"}  # names of persons are thrown away
        words = write_whole(self.folder / WORDS, {"vocabulary": vocabulary, **known})
        asked = {role: column for role, column in asdict(self.columns).items() if column}
        manifest = Manifest(
            name=name,
            block_documents=self.block_documents,
            tokeniser=self.tokeniser.settings() or {},
            columns=asked | ({"embedding": self.embedded_as} if self.embedded_as else {}),
            names=names,
            width=parts.width,
            words=len(vocabulary),
            words_digest=digest_of(words),
            read=builder.documents,
            dropped=counted_by_reason(parts.dropped),
            blocks=tuple(stored),
            shards=tuple(shards),
        ).sealed()
        manifest.write(self.folder)
        sync(self.folder)
        return manifest

    def _read(self) -> tuple[str, BuildingParts]:
        """Reads the source into parts, from where the last whole part ends."""
        begun = False

        def told(done: int, total: int) -> None:
            nonlocal begun
            if not begun:
                self.stages.stage(f"reading {Path(self.source).name}", total)
            begun = True
            self.stages.step(done)

        place, records = records_of(self.source, self.columns, told)
        forms = max(1000, int(_SHARE_OF_FORMS * (self.megabytes << 20)) // _BYTES_OF_FORM)
        builder = CorpusBuilder(self.tokeniser, name=place.name, source=str(place), embed=self.embed, raw_forms=forms)
        parts = BuildingParts(self._building, builder)
        parts.resume()
        most = int(_SHARE_READ * (self.megabytes << 20))
        for record in islice(records, builder.documents, None):
            builder.add(record)
            if builder.held >= self.block_documents or builder.bytes_held >= most:
                parts.add()
                self._check_words(builder)
        if builder.held:
            parts.add()
        return place.name, parts

    def _check_words(self, builder: CorpusBuilder) -> None:
        count, needed = _words_and_names(builder)
        if needed > (left := int(_SHARE_OF_WORDS * self.megabytes)):
            raise Mistake(
                "{count} different words and names take {needed} MB of memory, and --memory leaves {megabytes} MB for them",
                hint="give the same command with more --memory, and it goes on; or make fewer words, such as with "
                "tokeniser.ngrams=1",
                count=count,
                needed=needed,
                megabytes=left,
            )

    def _write_shards(
        self, blocks: UnwrittenBlocks, names: tuple[str, ...], parts: BuildingParts
    ) -> tuple[list[BlockEntry], list[int]]:
        layout, megabytes = (
            BlockLayout.of(names, parts.width, counted=True),
            self.megabytes - _words_and_names(parts.builder)[1],
        )
        files = min(self.shards or -(-len(blocks) // _SHARD_BLOCKS), len(blocks))
        shards = [len(blocks) // files + (number < len(blocks) % files) for number in range(files)]
        self.stages.stage("writing blocks", len(blocks))
        stored: list[BlockEntry] = []
        for number, held in enumerate(shards):
            numbers = range(len(stored), len(stored) + held)
            for block in numbers:
                blocks.check_room(block, megabytes)
            stored += self._kept_shard(number, held, layout) or self._new_shard(number, numbers, blocks, layout)
            self.stages.step(len(stored))
        return stored, shards

    def _new_shard(self, number: int, numbers: range, blocks: UnwrittenBlocks, layout: BlockLayout) -> list[BlockEntry]:
        name, stored = shard_name(number), []
        beside = self._building / name
        with writing(beside) as stream:
            for block in numbers:
                size, columns = blocks.made(block)
                stored.append(BlockEntry(size, layout.write(stream, columns)))
                self.stages.step(block + 1)
        sync(beside)
        beside.replace(self.folder / name)
        write_whole(self._building / f"{name}.json", [[*asdict(one.size).values(), one.digest] for one in stored])
        return stored

    def _kept_shard(self, number: int, held: int, layout: BlockLayout) -> list[BlockEntry]:
        """The blocks of a file that an earlier build wrote whole; nothing if it is not as it was written."""
        name = shard_name(number)
        try:
            found = json.loads((self._building / f"{name}.json").read_bytes())
            stored = [BlockEntry(BlockSize(*sizes), digest) for *sizes, digest in found]
            with (self.folder / name).open("rb") as stream:
                whole = all(digest_of(stream.read(layout.length(one.size))) == one.digest for one in stored)
        except (OSError, ValueError):
            return []
        return stored if whole and len(stored) == held else []

    @property
    def _building(self) -> Path:
        return self.folder / BUILDING

    def _settings(self) -> dict[str, Any]:
        """The settings that the bytes depend on, by their names."""
        tokeniser = {f"tokeniser.{name}": value for name, value in (self.tokeniser.settings() or {}).items()}
        shape = {"--block-documents": self.block_documents, "--shards": self.shards, "embeddings": self.embedded_as}
        return {**tokeniser, **{f"--{role}": column for role, column in asdict(self.columns).items()}, **shape}


def _words_and_names(builder: CorpusBuilder) -> tuple[int, int]:
    """How many there are, and the MB that they take."""
    count = len(builder.lexicon.words) + sum(map(len, builder.names.values()))
    return count, count * _BYTES_OF_WORD >> 20
