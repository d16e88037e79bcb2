"""Reads a corpus from any path: chooses the reader by the name of the file. A corpus on disk is opened, and stays there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from securetm.corpus.building import CorpusBuilder, Embed
from securetm.corpus.corpus import Corpus
from securetm.corpus.formats import folder_records, unknown_format
from securetm.corpus.records import Columns, OnProgress, Record, faults_named, size_of
from securetm.corpus.store import Manifest, is_stored, shortened
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import Mistake, NoSuchPath
from securetm.registries import Registry

Reader = Callable[[Path, Columns, OnProgress | None], Iterator[Record]]


READERS = Registry(
    "corpus reader",
    "securetm.corpora",
    "collections.abc:Callable",
    {  # by the ending of the files that a reader reads
        "csv": "securetm.corpus.formats:table_records",
        "csv.gz": "securetm.corpus.formats:table_records",
        "jsonl": "securetm.corpus.formats:jsonl_records",
        "jsonl.gz": "securetm.corpus.formats:jsonl_records",
        "ndjson": "securetm.corpus.formats:jsonl_records",
        "ndjson.gz": "securetm.corpus.formats:jsonl_records",
        "parquet": "securetm.corpus.formats:parquet_records",
        "tsv": "securetm.corpus.formats:table_records",
        "tsv.gz": "securetm.corpus.formats:table_records",
    },
)


def read_corpus(
    path: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    party: str | None = None,
    date: str | None = None,
    person: str | None = None,
    embedding: str | None = None,
    id: str | None = None,  # noqa: A002 - the column is called so
    tokeniser: Tokeniser | None = None,
    name: str | None = None,
    keep_empty: bool = False,
    embed: Embed | None = None,
    on_progress: OnProgress | None = None,
    secret: bytes = b"",
) -> Corpus:
    """Reads documents from .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of such files or of .txt files.

    Each keyword names the column that plays the role. Without one, a column that is called like the role plays it (in Parquet
    `bow_text` and `fos` come before `text` and `label`); only text must be there. A folder's label is the subfolder.
    A reader of another package is found by the ending that it declares, or named before the path, as in `mbox:archive`.
    `embed` makes embeddings of the texts where the file has none (`TextEmbedder.embed`).
    A document is named by its `id` where a column is given, else by what it says: no name depends on another document or on a
    place in the file. Names become keys under `secret` and under `name`, or the file's name; without a secret anybody who
    guesses a document can compute its key. Documents without a word are left out, and counted in `skipped`.
    """
    place, records = records_of(path, Columns(text, label, party, date, person, embedding, id), on_progress)
    builder = CorpusBuilder(tokeniser or Tokeniser(), name=name or place.name, source=str(place), embed=embed, secret=secret)
    for found in records:
        builder.add(found)
    return Corpus(*builder.finish(keep_empty=keep_empty))


def open_corpus(
    path: str | Path,
    *,
    tokeniser: Tokeniser,
    name: str | None = None,
    embed: Embed | None = None,
    on_progress: OnProgress | None = None,
    secret: bytes = b"",
    **columns: Any,
) -> Corpus:
    """The documents of a path, for a party. A corpus on disk must have been built with this tokeniser and these columns."""
    if not is_stored(Path(path)):
        made: dict[str, Any] = {"tokeniser": tokeniser, "name": name, "embed": embed, "secret": secret}
        return read_corpus(path, on_progress=on_progress, **made, **columns)
    _check_settings(Path(path), tokeniser, columns)
    return Corpus.open(path, name, secret)


def _check_settings(folder: Path, tokeniser: Tokeniser, columns: Mapping[str, str | None]) -> None:
    """Refuses settings that would have made other documents of the same source."""
    manifest, wanted = Manifest.read_from(folder), tokeniser.settings() or {"words": "a function"}
    for setting, value in wanted.items():
        found = manifest.tokeniser.get(setting)
        if found != (list(value) if isinstance(value, tuple) else value):
            raise Mistake(
                "the words of {path} were made with {setting} = {found}, and the plan says {wanted}",
                hint="build the corpus again from its documents with the plan's settings: securetm corpus build SOURCE --plan "
                "PLAN",
                path=str(folder),
                setting=setting,
                found=str(shortened(found)),
                wanted=str(shortened(value)),
            )
    for role, column in columns.items():
        if column and manifest.columns.get(role) != column:
            raise Mistake(
                "the columns of {path} were chosen when it was built, and {role} = {column} means nothing now",
                hint="leave {role} out, or build the corpus again with --{role} {column}",
                path=str(folder),
                role=role,
                column=column,
            )


def records_of(path: str | Path, columns: Columns, on_progress: OnProgress | None = None) -> tuple[Path, Iterator[Record]]:
    """Where the documents lie, and the documents one at a time. Several files of a folder are read in the order of names."""
    reader, place = _reader(path)
    return place, reader(place, columns, on_progress)


def files_of(path: str | Path) -> list[Path]:
    """The files that the documents of this path are read from, in the order in which they are read."""
    _, place = _reader(path)
    if not place.is_dir():
        return [place]
    with faults_named(place):
        return sorted(found for found in place.rglob("*.txt") if found.is_file()) or _shards(place)


def is_corpus(path: Path) -> bool:
    """Whether a path looks like documents: a folder, or a file with an ending that a reader takes."""
    return path.is_dir() or _ending(path) in READERS


def _reader(path: str | Path) -> tuple[Reader, Path]:
    """The reader of that path, and the path without the name of a reader before it."""
    named, colon, rest = str(path).partition(":")
    if colon and not Path(path).exists():
        return READERS.load(named), _existing(Path(rest))
    path = Path(path)
    if path.is_dir():
        with faults_named(path):
            texts = next(path.rglob("*.txt"), None) is not None
        return folder_records if texts or not _shards(path) else _shard_records, path
    ending = _ending(_existing(path))
    if not ending:
        raise unknown_format(path)
    return READERS.load(ending), path


def _shards(folder: Path) -> list[Path]:
    """The files in a folder that a reader takes, in the order of their names."""
    with faults_named(folder):
        return sorted(found for found in folder.iterdir() if found.is_file() and _ending(found))


def _shard_records(folder: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of all these files, one file after the other."""
    files, before = _shards(folder), 0
    total = sum(map(size_of, files))
    for file in files:
        begun = before

        def told(done: int, _: int, begun: int = begun) -> None:
            if on_progress:
                on_progress(begun + done, total)

        for found in READERS.load(_ending(file))(file, columns, told):
            found.source = str(file)
            yield found
        before += size_of(file)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise NoSuchPath(str(path))
    return path


def _ending(path: Path) -> str:
    """The longest ending of a file's name that a reader is declared for, or nothing."""
    parts, known = path.name.lower().split("."), READERS.names()
    return next((ending for n in range(1, len(parts)) if (ending := ".".join(parts[n:])) in known), "")
