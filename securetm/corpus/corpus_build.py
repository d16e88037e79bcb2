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
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.blocks import persons_of_blocks
from securetm.corpus.building import (
    CorpusBuilder,
    Embed,
    TakenDocuments,
    counted_by_reason,
    in_alphabetical_order,
    no_documents,
    repeated_ids,
)
from securetm.corpus.document_names import copy_numbers
from securetm.corpus.held_documents import counted_tokens, merge_ends
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
    taken = _taken()
    if megabytes is None:  # nobody asked for a bound that a large process would be past
        return max(USUAL - taken, _LEAST)
    if megabytes - taken < _LEAST:
        least = taken + _LEAST
        raise BadSetting("securetm corpus build", "--memory", str(megabytes), f"must be at least {least}: {taken} MB are taken")
    return megabytes - taken


def _taken() -> int:
    if _STATUS.is_file():
        return int(_STATUS.read_text().split()[1]) * resource.getpagesize() >> 20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10  # the peak so far, which is no less


_SOURCE, _LOCK = "source.json", "lock"
_BEGUN = {_LOCK, _SOURCE, f"{_SOURCE}.unfinished"}  # what a build has before it kept anything
_OURS = (BUILDING, MANIFEST, WORDS, f"{WORDS}.unfinished", f"{MANIFEST}.unfinished")


@dataclass(frozen=True)
class BuildingFolder:
    """One folder that a build fills. What is not finished lies in a folder inside it."""

    folder: Path

    @property
    def building(self) -> Path:
        """Where a build keeps what it has not finished."""
        return self.folder / BUILDING

    def check_free(self) -> None:
        """Refuses a folder with a finished corpus, or with anything that no build put there."""
        if not self.folder.is_dir():
            return
        if not self.building.is_dir():
            if (self.folder / MANIFEST).is_file():
                raise self._taken("a finished corpus")
            if any(self.folder.iterdir()):
                raise self._taken("other files")
            return
        begun = (self.building / _SOURCE).is_file()
        inside = {path.name for path in self.building.iterdir()} - {_LOCK, f"{_SOURCE}.unfinished"}
        beside = [path for path in self.folder.iterdir() if path.name not in _OURS and path.suffix != ".shard"]
        if beside or (inside and not begun):
            raise self._taken("other files")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Makes the folders. Refuses while another process builds there. What fails before it kept anything leaves none."""
        missing = [one for one in (self.building, self.folder) if not one.exists()]
        private_folder(self.folder)
        private_folder(self.building)
        private_file(self.building / _LOCK)
        with (self.building / _LOCK).open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as busy:
                raise self._taken("a corpus that another process is building") from busy
            try:
                yield
            except BaseException:
                self._leave_none_of(missing)
                raise

    def check_same(self, source: str, settings: Mapping[str, Any]) -> None:
        """Refuses another source or other settings than those that the build began with; a new build notes them."""
        path, now = self.building / _SOURCE, json.loads(json.dumps({"files": _state_of(source), "settings": settings}))
        if not path.is_file():
            write_whole(path, now)
            return
        try:
            then = json.loads(path.read_bytes())
            differing = [name for name, value in now["settings"].items() if then["settings"].get(name) != value]
            same_files = then["files"] == now["files"]
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise self._taken("a build whose settings are damaged") from fault
        if differing:
            first = differing[0]
            raise Mistake(
                "the build in {path} began with {setting} = {found}, and now {wanted} is asked for",
                hint="give the same settings as then, and it goes on; or delete {path}, or take another folder with --out, to "
                "begin anew",
                path=str(self.folder),
                setting=first,
                found=str(shortened(then["settings"].get(first))),
                wanted=str(shortened(now["settings"][first])),
            )
        if not same_files:
            raise Mistake(
                "{source} is not what it was when the build in {path} began: a file has another name, size or time of change",
                hint="delete {path} and build anew; what was built of the earlier documents is still there, and is no "
                "whole corpus",
                source=source,
                path=str(self.folder),
            )

    def _taken(self, what: str) -> Mistake:
        return Mistake(
            "{path} holds {what}",
            hint="take a folder that is not there yet with --out, or delete this one first",
            path=str(self.folder),
            what=what,
        )

    def _leave_none_of(self, missing: list[Path]) -> None:
        """Deletes the folders that were missing, if they hold nothing that a build could go on with."""
        if self.building in missing and not {path.name for path in self.building.iterdir()} - _BEGUN:
            self.clear()
            for folder in set(missing) - {self.building}:
                with suppress(OSError):  # somebody put something there meanwhile
                    folder.rmdir()

    def is_finished(self) -> bool:
        """Whether a whole corpus is there, and only the end of its build was cut off."""
        return (self.folder / MANIFEST).is_file()

    def clear(self) -> None:
        """Deletes what only the build needed; what names the build goes last, so that this can be cut off and go on."""
        for path in self.building.iterdir():
            if path.name not in (_SOURCE, _LOCK):
                path.unlink()
        for name in (_SOURCE, _LOCK):
            with suppress(FileNotFoundError):
                (self.building / name).unlink()
        self.building.rmdir()


def _state_of(source: str) -> str:
    """A digest of the names, sizes and times of the files that documents are read from."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files_of(source):
        found = file.stat()
        digest.update(f"{file.name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


_BYTES_OF_NAME = 96  # in memory while it is compared


@dataclass
class Persons:
    """The order of persons by their first document, and how many documents each has."""

    _places: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by the person's number; -1: not met
    documents: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by place

    def placed(self, numbers: Array) -> Array:
        """The places of these documents' persons, who are counted."""
        more = int(numbers.max(initial=-1)) + 1 - len(self._places)
        self._places = np.concatenate([self._places, np.full(max(more, 0), -1)])
        met, first = np.unique(numbers, return_index=True)
        met = met[np.argsort(first)]
        new = met[self._places[met] < 0]
        self._places[new] = np.arange(len(self.documents), len(self.documents) + len(new))
        self.documents = np.concatenate([self.documents, np.zeros(len(new), dtype=np.int64)])
        places = self.places(numbers)
        self.documents += np.bincount(places, minlength=len(self.documents))
        return places

    def places(self, numbers: Array) -> Array:
        """The places of persons that were met before."""
        return np.asarray(self._places[numbers])


@dataclass
class BuildingParts:
    """The folder of a build's parts."""

    folder: Path
    persons: Persons = field(default_factory=Persons)
    dropped: Counter[tuple[str, ...]] = field(default_factory=Counter)
    sizes: list[BlockSize] = field(default_factory=list)
    width: int = 0  # of an embedding

    def add(self, taken: TakenDocuments, builder: CorpusBuilder) -> None:
        """Writes a part, and then what it added to the words and names."""
        if len(taken):
            self.width = 0 if taken.embeddings is None else taken.embeddings.shape[1]
        columns = self._in_order(_columns_of(taken), by_person=builder.persons_known)
        size = size_of_block(columns)
        with writing(self._part(len(self.sizes))) as stream:
            digest = self._layout.write(stream, columns)
        sync(self._part(len(self.sizes)))
        facts = {**asdict(size), "digest": digest, "width": self.width, "read": builder.documents}
        facts |= {"given_width": builder.width, "persons": builder.persons_known, "ids": builder.ids_known}
        names = {name: list(builder.columns[name].known)[self._names[name] :] for name in NAMES}
        facts |= {"words": list(builder.lexicon.words)[self._words :], "names": names}
        write_whole(self._facts(len(self.sizes)), {**facts, "dropped": [[*why, n] for why, n in sorted(taken.dropped.items())]})
        self._note(size, taken.dropped, builder)

    def resume(self, builder: CorpusBuilder) -> None:
        """Gives the builder what all whole parts hold, and forgets the first part that is not whole and those after it."""
        while (facts := self._whole(len(self.sizes))) is not None:
            for word in facts["words"]:
                builder.lexicon.words[word] = len(builder.lexicon.words)
            for name, entries in facts["names"].items():
                known = builder.columns[name].known
                known.update({entry: number for number, entry in enumerate(entries, len(known))})
            builder.resume(int(facts["read"]), facts["given_width"], bool(facts["persons"]), bool(facts["ids"]))
            self.width = int(facts["width"])
            dropped = Counter({tuple(why): int(n) for *why, n in facts["dropped"]})
            size = BlockSize(facts["documents"], facts["tokens"], facts["sentences"])
            if builder.persons_known:
                columns = self._mapped(len(self.sizes), size)
                self.persons.placed(columns["person"][np.argsort(columns["rows"])])  # in the order of the source
            self._note(size, dropped, builder)

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
        return sum(self._number_share(share, passes) for share in range(passes))

    def _number_share(self, share: int, passes: int) -> int:
        """Those whose names have this remainder."""
        where, rows, digests = [], [], []
        for number, size in enumerate(self.sizes):
            columns = self._mapped(number, size)
            mine = np.flatnonzero(np.ascontiguousarray(columns["digests"]).view("<u8")[:, 0] % np.uint64(passes) == share)
            where.append(np.column_stack([np.full(len(mine), number), mine]))
            rows.append(columns["rows"][mine])
            digests.append(columns["digests"][mine])
        if not where:
            return 0
        in_source_order = np.argsort(np.concatenate(rows))
        found = copy_numbers(np.concatenate(digests)[in_source_order])
        later = np.flatnonzero(found)
        parts = np.concatenate(where)[in_source_order[later]]
        for number in np.unique(parts[:, 0]):
            own = parts[:, 0] == number
            self._copies.setdefault(int(number), []).append((parts[own, 1], found[later[own]]))
        return len(later)

    # ---- files -------------------------------------------------------------------------------------------------------

    _copies: dict[int, list[tuple[Array, Array]]] = field(default_factory=dict)  # by part: later copies, and their numbers
    _words: int = 0
    _names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 1))

    def _note(self, size: BlockSize, dropped: Counter[tuple[str, ...]], builder: CorpusBuilder) -> None:
        self.sizes.append(size)
        self.dropped += dropped
        self._words = len(builder.lexicon.words)
        self._names = {name: len(builder.columns[name].known) for name in NAMES}

    def _in_order(self, columns: dict[str, Array], *, by_person: bool) -> dict[str, Array]:
        if not by_person or not len(columns["rows"]):
            return columns
        return chosen_documents(columns, np.argsort(self.persons.placed(columns["person"]), kind="stable"))

    @property
    def _layout(self) -> BlockLayout:
        return BlockLayout.of(NAMES, self.width, counted=False)

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:05d}.part"

    def _facts(self, number: int) -> Path:
        return self.folder / f"{number:05d}.json"

    def _mapped(self, number: int, size: BlockSize) -> dict[str, Array]:
        return self._layout.mapped(self._part(number), 0, size)[0]

    def _whole(self, number: int) -> dict[str, Any] | None:
        """The facts of a part, if it was written whole and is as it was."""
        try:
            facts = json.loads(self._facts(number).read_bytes())
            part = self._part(number).read_bytes()
        except (OSError, ValueError):
            return None
        return facts if digest_of(part) == facts["digest"] else None


def _columns_of(taken: TakenDocuments) -> dict[str, Array]:
    found = {"rows": taken.rows, "texts": taken.texts, "digests": taken.digests, **taken.names, "tokens": taken.tokens}
    found |= {"copies": np.zeros(len(taken), np.int32), "token_ends": taken.token_ends}  # numbered when all are read
    found["sentence_ends"] = merge_ends(taken.sentence_ends, taken.token_ends)
    return found if taken.embeddings is None else {**found, "embeddings": taken.embeddings}


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

    def __init__(self, parts: BuildingParts, place: Array, block_documents: int, *, by_person: bool) -> None:
        self._parts, self._place, self._by_person = parts, place, by_person
        documents = [size.documents for size in parts.sizes]
        if by_person:
            ends = persons_of_blocks(parts.persons.documents, block_documents)
        else:
            ends = np.append(np.arange(block_documents, sum(documents), block_documents), sum(documents))
        self._bounds = []  # of each part: where the documents of each block begin and end
        before = 0
        for number, held in enumerate(documents):
            if by_person:
                bounds = np.searchsorted(self._places(number), np.append(0, ends))
            else:
                bounds = np.clip(np.append(0, ends) - before, 0, held)
            self._bounds.append(bounds)
            before += held
        self._blocks = len(ends)

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


MEMORY = 1024  # MB
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
    megabytes: int = MEMORY
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
        home = BuildingFolder(self.folder)
        home.check_free()
        try:
            with home.alone():
                home.check_same(self.source, self._settings())
                manifest = Manifest.read_from(self.folder) if home.is_finished() else self._built(home)
                home.clear()
        except OSError as fault:
            raise CannotWrite(str(self.folder), fault.strerror or type(fault).__name__) from fault
        return manifest

    def _built(self, home: BuildingFolder) -> Manifest:
        name, builder, parts = self._read()
        home.check_same(self.source, self._settings())  # it may have changed while it was read
        if not sum(size.documents for size in parts.sizes):
            raise no_documents(self.source, builder.documents)
        builder.lexicon.clear()  # of raw forms, which nobody asks for any more
        copies = parts.number_copies(int(_SHARE_READ * (self.megabytes << 20)))
        if builder.ids_known and copies:
            raise repeated_ids(self.source, copies)
        vocabulary, place = in_alphabetical_order(builder.lexicon.words)
        blocks = UnwrittenBlocks(parts, place, self.block_documents, by_person=builder.persons_known)
        names = tuple(one for one in NAMES if builder.columns[one].is_used)
        layout = BlockLayout.of(names, parts.width, counted=True)
        stored, shards = self._write_shards(blocks, layout, self.megabytes - _megabytes_of_words(builder))
        known = {one: list(builder.columns[one].known) for one in names if one != "person"}  # names of persons are thrown away
        words = write_whole(self.folder / WORDS, {"vocabulary": vocabulary, **known})
        asked = {role: column for role, column in asdict(self.columns).items() if column}
        dropped = counted_by_reason(parts.dropped)
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
            dropped=dropped,
            blocks=tuple(stored),
            shards=tuple(shards),
        ).sealed()
        manifest.write(self.folder)
        sync(self.folder)
        return manifest

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> tuple[str, CorpusBuilder, BuildingParts]:
        """Reads the source into parts, from where the last whole part ends."""
        place, records = records_of(self.source, self.columns, self._shown(f"reading {Path(self.source).name}"))
        forms = max(1000, int(_SHARE_OF_FORMS * (self.megabytes << 20)) // _BYTES_OF_FORM)
        builder = CorpusBuilder(self.tokeniser, name=place.name, source=str(place), embed=self.embed, raw_forms=forms)
        parts = BuildingParts(self._building)
        parts.resume(builder)
        most = int(_SHARE_READ * (self.megabytes << 20))
        for record in islice(records, builder.documents, None):
            builder.add(record)
            if builder.held >= self.block_documents or builder.bytes_held >= most:
                parts.add(builder.taken(), builder)
                self._check_words(builder)
        if builder.held:
            parts.add(builder.taken(), builder)
        return place.name, builder, parts

    def _check_words(self, builder: CorpusBuilder) -> None:
        needed, left = _megabytes_of_words(builder), int(_SHARE_OF_WORDS * self.megabytes)
        if needed > left:
            raise Mistake(
                "{count} different words and names take {needed} MB of memory, and --memory leaves {megabytes} MB for them",
                hint="give the same command with more --memory, and it goes on; or make fewer words, such as with "
                "tokeniser.ngrams=1",
                count=_words_and_names(builder),
                needed=needed,
                megabytes=left,
            )

    def _shown(self, title: str) -> Any:
        state = {"begun": False}

        def told(done: int, total: int) -> None:
            if not state["begun"]:
                state["begun"] = True
                self.stages.stage(title, total)
            self.stages.step(done)

        return told

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _write_shards(self, blocks: UnwrittenBlocks, layout: BlockLayout, megabytes: int) -> tuple[list[BlockEntry], list[int]]:
        shards = _spread(len(blocks), self.shards)
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
        path, stored = self.folder / shard_name(number), []
        beside = self._building / shard_name(number)
        with writing(beside) as stream:
            for block in numbers:
                size, columns = blocks.made(block)
                stored.append(BlockEntry(size, layout.write(stream, columns)))
                self.stages.step(block + 1)
        sync(beside)
        beside.replace(path)
        write_whole(self._building / f"{path.name}.json", [[*asdict(one.size).values(), one.digest] for one in stored])
        return stored

    def _kept_shard(self, number: int, held: int, layout: BlockLayout) -> list[BlockEntry]:
        """The blocks of a file that an earlier build wrote whole; nothing if it is not as it was written."""
        path = self.folder / shard_name(number)
        try:
            found = json.loads((self._building / f"{path.name}.json").read_bytes())
            stored = [BlockEntry(BlockSize(*sizes), digest) for *sizes, digest in found]
            with path.open("rb") as stream:
                whole = all(digest_of(stream.read(layout.length(one.size))) == one.digest for one in stored)
        except (OSError, ValueError):
            return []
        return stored if whole and len(stored) == held else []

    # ---- the folder --------------------------------------------------------------------------------------------------

    @property
    def _building(self) -> Path:
        return self.folder / BUILDING

    def _settings(self) -> dict[str, Any]:
        """The settings that the bytes depend on, by their names."""
        tokeniser = {f"tokeniser.{name}": value for name, value in (self.tokeniser.settings() or {}).items()}
        shape = {"--block-documents": self.block_documents, "--shards": self.shards, "embeddings": self.embedded_as}
        return {**tokeniser, **{f"--{role}": column for role, column in asdict(self.columns).items()}, **shape}


def _spread(blocks: int, shards: int) -> list[int]:
    """How many blocks each file holds. They differ by one at most."""
    files = min(shards or -(-blocks // _SHARD_BLOCKS), blocks)
    return [blocks // files + (number < blocks % files) for number in range(files)]


def _words_and_names(builder: CorpusBuilder) -> int:
    return len(builder.lexicon.words) + sum(len(column.known) for column in builder.columns.values())


def _megabytes_of_words(builder: CorpusBuilder) -> int:
    return _words_and_names(builder) * _BYTES_OF_WORD >> 20
