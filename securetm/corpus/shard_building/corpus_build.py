"""Writes a corpus on disk from documents that come one at a time. Memory is bounded by a setting, and not by the documents.

First the source is read once, and its documents go into parts with words by number of first appearance. Then blocks are made of
the parts one at a time, with words in alphabetical order. The same source and settings give the same bytes, however often the
build was stopped. What stays in memory is the vocabulary, the names, and a few bytes for each person.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from securetm.corpus.building import CorpusBuilder, Embed, counted_by_reason, in_alphabetical_order
from securetm.corpus.columns import Columns
from securetm.corpus.corpus_errors import NoDocuments
from securetm.corpus.readers import files_of, records_of
from securetm.corpus.shard_building.building_parts import BuildingParts
from securetm.corpus.shard_building.unwritten_blocks import BYTES_OF_TOKEN, UnwrittenBlocks
from securetm.corpus.shards.block_columns import size_of_block
from securetm.corpus.shards.block_layout import NAMES, BlockLayout, BlockSize, digest_of
from securetm.corpus.shards.manifest import BUILDING, MANIFEST, WORDS, BlockEntry, Manifest, shard_name, write_whole
from securetm.corpus.shards.shard_errors import FolderTaken
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, CannotWrite
from securetm.private_files import private_file, private_folder, sync, writing
from securetm.stages import Stages, Unwatched

BLOCK_DOCUMENTS = 65_536
MEMORY = 1024  # MB
_SHARD_BLOCKS = 16  # blocks in a file, where nobody says how many files there are
_FORM = 200  # bytes that a remembered raw form of a word takes


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
        for name, least in (("block_documents", 1), ("shards", 0), ("megabytes", 64)):
            if getattr(self, name) < least:
                raise BadSetting("corpus build", name, str(getattr(self, name)), f"must be at least {least}")
        if self.tokeniser.settings() is None:
            raise BadSetting("corpus build", "words", "a function", "cannot be kept with the corpus: use other settings")

    def run(self) -> Manifest:
        """Builds the corpus, or goes on with a build of the same source and settings that was stopped."""
        files_of(self.source)  # a source that is not there is refused before a folder is made
        self._check_free()
        try:
            private_folder(self.folder)
            private_folder(self._building)
            with self._alone():
                self._check_source()
                return self._built()
        except OSError as fault:
            raise CannotWrite(str(self.folder), fault.strerror or type(fault).__name__) from fault

    def _built(self) -> Manifest:
        name, builder, parts = self._read()
        if not sum(size.documents for size in parts.sizes):
            raise NoDocuments(self.source, builder.documents)
        vocabulary, place = in_alphabetical_order(builder.lexicon.words)
        blocks = UnwrittenBlocks(parts, place, self.block_documents, by_person=builder.persons_known)
        names = tuple(one for one in NAMES if builder.columns[one].is_used)
        layout = BlockLayout.of(names, parts.width, counted=True)
        stored, shards = self._write_shards(blocks, layout)
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
        shutil.rmtree(self._building)
        return manifest

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> tuple[str, CorpusBuilder, BuildingParts]:
        """Reads the source into parts, from where the last whole part ends."""
        place, records = records_of(self.source, self.columns, self._shown(f"reading {Path(self.source).name}"))
        forms = max(1000, (self.megabytes << 20) // 4 // _FORM)
        builder = CorpusBuilder(self.tokeniser, name=place.name, source=str(place), embed=self.embed, raw_forms=forms)
        parts = BuildingParts(self._building)
        parts.resume(builder)
        most = max(1, (self.megabytes << 20) // 4 // BYTES_OF_TOKEN)  # words of a part
        for record in islice(records, builder.documents, None):
            builder.add(record)
            if builder.held >= self.block_documents or builder.words_held >= most:
                parts.add(builder.taken(), builder)
        if builder.held:
            parts.add(builder.taken(), builder)
        return place.name, builder, parts

    def _shown(self, title: str) -> Any:
        state = {"begun": False}

        def told(done: int, total: int) -> None:
            if not state["begun"]:
                state["begun"] = True
                self.stages.stage(title, total)
            self.stages.step(done)

        return told

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _write_shards(self, blocks: UnwrittenBlocks, layout: BlockLayout) -> tuple[list[BlockEntry], list[int]]:
        shards = _spread(len(blocks), self.shards)
        self.stages.stage("writing blocks", len(blocks))
        stored: list[BlockEntry] = []
        for number, held in enumerate(shards):
            numbers = range(len(stored), len(stored) + held)
            stored += self._kept_shard(number, held, layout) or self._new_shard(number, numbers, blocks, layout)
            self.stages.step(len(stored))
        return stored, shards

    def _new_shard(self, number: int, numbers: range, blocks: UnwrittenBlocks, layout: BlockLayout) -> list[BlockEntry]:
        path, stored = self.folder / shard_name(number), []
        beside = self._building / shard_name(number)
        with writing(beside) as stream:
            for block in numbers:
                blocks.check_room(block, self.megabytes)
                columns = blocks.columns(block)
                stored.append(BlockEntry(size_of_block(columns), layout.write(stream, columns)))
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

    def _check_free(self) -> None:
        if (self.folder / MANIFEST).is_file():
            raise FolderTaken(str(self.folder), "a finished corpus")
        if self.folder.is_dir() and not self._building.is_dir() and any(self.folder.iterdir()):
            raise FolderTaken(str(self.folder), "other files")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        path = self.folder / ".building.lock"
        private_file(path)
        with path.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as busy:
                raise FolderTaken(str(self.folder), "a corpus that another process is building") from busy
            yield
        path.unlink(missing_ok=True)

    def _check_source(self) -> None:
        """Begins anew if the source or a setting that the bytes depend on is another one than before."""
        path, now = self._building / "source.json", self._fingerprint()
        try:
            same = json.loads(path.read_bytes()) == now
        except (OSError, ValueError):
            same = False
        if not same:
            for old in (*self._building.iterdir(), *self.folder.glob("*.shard")):
                old.unlink()
            write_whole(path, now)

    def _fingerprint(self) -> dict[str, Any]:
        files = [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files_of(self.source)]
        settings = [self.tokeniser.settings(), asdict(self.columns), self.block_documents, self.shards, self.embedded_as]
        return json.loads(json.dumps({"files": files, "settings": settings}))  # type: ignore[no-any-return]


def _spread(blocks: int, shards: int) -> list[int]:
    """How many blocks each file holds. They differ by one at most."""
    files = min(shards or -(-blocks // _SHARD_BLOCKS), blocks)
    return [blocks // files + (number < blocks % files) for number in range(files)]
