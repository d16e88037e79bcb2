"""Writes a corpus on disk from documents that come one at a time. Memory is bounded by a setting, and not by the documents.

First the source is read once, and its documents go into parts with words by number of first appearance. Then blocks are made of
the parts one at a time, with words in alphabetical order. The same source and settings give the same bytes, however often the
build was stopped. What stays in memory is the vocabulary, the names, and a few bytes for each person, which is refused where it
is too much.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from securetm.corpus.building import CorpusBuilder, Embed, counted_by_reason, in_alphabetical_order
from securetm.corpus.columns import Columns
from securetm.corpus.corpus_errors import NoDocuments, RepeatedIds
from securetm.corpus.readers import files_of, records_of
from securetm.corpus.shard_building.building_folder import BuildingFolder
from securetm.corpus.shard_building.building_parts import BuildingParts
from securetm.corpus.shard_building.unwritten_blocks import UnwrittenBlocks
from securetm.corpus.shards.block_layout import NAMES, BlockLayout, BlockSize, digest_of
from securetm.corpus.shards.manifest import BUILDING, WORDS, BlockEntry, Manifest, shard_name, write_whole
from securetm.corpus.shards.shard_errors import TooManyWords
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, CannotWrite
from securetm.private_files import sync, writing
from securetm.stages import Stages, Unwatched

BLOCK_DOCUMENTS = 65_536
MEMORY = 1024  # MB
_SHARD_BLOCKS = 16  # blocks in a file, where nobody says how many files there are
_FORM, _WORD = 200, 220  # bytes that a remembered raw form of a word takes, and a word or a name
# Shares of the memory: for documents that are read, for raw forms of words, and for words and names.
_READ, _FORMS, _WORDS = 0.25, 0.2, 0.5


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
            raise NoDocuments(self.source, builder.documents)
        builder.lexicon.clear()  # of raw forms, which nobody asks for any more
        copies = parts.number_copies(int(_READ * (self.megabytes << 20)))
        if builder.ids_known and copies:
            raise RepeatedIds(self.source, copies)
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
        forms = max(1000, int(_FORMS * (self.megabytes << 20)) // _FORM)
        builder = CorpusBuilder(self.tokeniser, name=place.name, source=str(place), embed=self.embed, raw_forms=forms)
        parts = BuildingParts(self._building)
        parts.resume(builder)
        most = int(_READ * (self.megabytes << 20))
        for record in islice(records, builder.documents, None):
            builder.add(record)
            if builder.held >= self.block_documents or builder.bytes_held >= most:
                parts.add(builder.taken(), builder)
                self._check_words(builder)
        if builder.held:
            parts.add(builder.taken(), builder)
        return place.name, builder, parts

    def _check_words(self, builder: CorpusBuilder) -> None:
        needed, left = _megabytes_of_words(builder), int(_WORDS * self.megabytes)
        if needed > left:
            raise TooManyWords(_words_and_names(builder), needed, left)

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
                made = blocks.made(block)
                stored.append(BlockEntry(made.size, layout.write(stream, made.columns)))
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
    return _words_and_names(builder) * _WORD >> 20
