"""Reads documents from any path: tables, JSON lines, Parquet, folders of texts. A corpus on disk is opened, and stays there.

The name of the file chooses the reader. Each reads with bounded memory: a row, a line, a batch of rows or a file at a time.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from securetm.corpus.building import CorpusBuilder, Embed
from securetm.corpus.corpus import Corpus
from securetm.corpus.given_texts import GLANCE, language_seen, tokeniser_of
from securetm.corpus.records import (
    LIMIT,
    ROLES,
    USUAL,
    USUAL_IN_PARQUET,
    Columns,
    OnProgress,
    Record,
    bad_cell,
    bad_table,
    check_names,
    damaged_file,
    decoded,
    document_too_long,
    empty_file,
    faults_named,
    incomplete_column,
    invalid_json,
    missing_text,
    numbered_lines,
    record,
    size_of,
)
from securetm.corpus.store import Manifest, is_stored, shortened
from securetm.corpus.tokeniser import ENGLISH_LIST, LATER, RECOMMENDED, Tokeniser
from securetm.data_classes import dataclass
from securetm.errors import BadSetting, Mistake, NoSuchPath
from securetm.registries import Registry


def table_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .csv or .tsv file. Line numbers in errors are those of the first line of the row."""
    rows = _rows(path, on_progress)
    line, header = next(rows, (0, []))
    if not header:
        raise empty_file(path)
    check_names(header, path, line)
    roles = columns.found_in(header, path, line)
    places = {role: header.index(column) for role, column in roles.items()}
    found = False
    for line, row in rows:
        if len(row) != len(header):
            raise bad_table(path, line, f"the row has {len(row)} cells where the first line names {len(header)}")
        found = True
        yield record({role: row[place] or None for role, place in places.items()}, path, line)
    if not found:
        raise empty_file(path)


def _rows(path: Path, on_progress: OnProgress | None) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its first line: a quote that nobody closes takes in many more."""
    if csv.field_size_limit() < LIMIT:
        csv.field_size_limit(LIMIT)  # a setting of the whole process, so it is only ever raised
    lines = (line for _, line in numbered_lines(path, on_progress))
    first = next(lines, "")
    # A tab in .tsv; in .csv a comma, or the semicolon that spreadsheets write where the comma is the decimal point.
    delimiter = "\t" if ".tsv" in path.suffixes else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    begins = 1
    try:
        for row in reader:
            if row:
                yield begins, row
            begins = reader.line_num + 1
    except csv.Error as fault:
        if "field larger than field limit" in str(fault):
            raise document_too_long(path, begins) from None
        raise bad_table(path, begins, "the double quotes or line breaks of this row do not fit") from None


_SPARSE = ("label", "party", "date")  # a line may lack them, whichever it is: no line decides for another one
_STRICT = ("person", "embedding")  # every document has one, or none has: one that first comes on a later line is an error


def jsonl_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .jsonl or .jsonl.gz file. Blank lines are passed over."""
    roles: dict[str, str] = {}
    for line, text in numbered_lines(path, on_progress):
        if text.isspace():
            continue
        cells = _object(text, path, line)
        if not roles:
            roles = {role: USUAL[role][0] for role in _SPARSE} | columns.found_in(cells.keys(), path, line)
        if roles["text"] not in cells:
            raise missing_text(path, line, roles["text"])
        for role in _STRICT:
            if role not in roles and any(cells.get(name) is not None for name in USUAL[role]):
                raise incomplete_column(path, line, role, given=True)
        yield record({role: cells.get(column) for role, column in roles.items()}, path, line)
    if not roles:
        raise empty_file(path)


def _object(text: str, path: Path, line: int) -> dict[str, Any]:
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError):
        raise invalid_json(path, line) from None  # json's own error carries the whole line
    if not isinstance(cells, dict):
        raise invalid_json(path, line)
    return cells


_ROWS = 256  # of a batch: the longest documents must still fit into memory
_BUFFER = 1 << 20  # bytes of a column that are read at once: a group of rows may be as large as the file


def parquet_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .parquet file; "line" in errors is the number of the row, from 1."""
    import pyarrow
    from pyarrow import parquet

    total = size_of(path)
    if not total:
        raise empty_file(path)
    try:
        with faults_named(path), parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            names = file.schema_arrow.names
            check_names(names, path, 1)
            roles = columns.found_in(names, path, 1, USUAL_IN_PARQUET)
            if not file.metadata.num_rows:
                raise empty_file(path)
            for row, cells in enumerate(_cells(file, roles), 1):
                yield record(_as_text(cells, path, row), path, row)
                if on_progress and (row % _ROWS == 0 or row == file.metadata.num_rows):
                    on_progress(total * row // file.metadata.num_rows, total)
    except UnicodeDecodeError:
        raise damaged_file(path, "a column of strings is not UTF-8") from None  # its own words quote the bytes
    except pyarrow.ArrowException as fault:
        raise damaged_file(path, "it is not a whole Parquet file") from fault


def _cells(file: Any, roles: dict[str, str]) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=_ROWS, columns=list(roles.values()), use_threads=False):
        columns = {role: _values(_undecoded(batch.column(column), role)) for role, column in roles.items()}
        for row in range(batch.num_rows):
            yield {role: values[row] for role, values in columns.items()}


def _undecoded(column: Any, role: str) -> Any:
    """Texts as bytes: a Parquet file may hold wrong UTF-8, and the error has to name the row."""
    import pyarrow

    if role != "text" or not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return column
    return column.cast(pyarrow.large_binary())


def _values(column: Any) -> Any:
    """One entry per row; vectors of one width stay numbers instead of becoming Python objects."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_fixed_size_list(kind) and not column.null_count:
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), kind.list_size)
    if (pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)) and pyarrow.types.is_floating(kind.value_type):
        return [None if not cell.is_valid else cell.values.to_numpy(zero_copy_only=False) for cell in column]
    return column.to_pylist()


def _as_text(cells: dict[str, Any], path: Path, row: int) -> dict[str, Any]:
    text = cells["text"]
    if text is not None and not isinstance(text, (str, bytes)):
        raise bad_cell(path, row, "text", f"is of type {type(text).__name__}, not a string")
    if text is not None and len(text) > LIMIT:
        raise document_too_long(path, row)
    if isinstance(text, bytes):
        return {**cells, "text": decoded(text, path, row, is_row=True)}
    return cells


def folder_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a folder and its subfolders, in the order of their names."""
    for role in ROLES:
        if asked := getattr(columns, role):
            raise BadSetting("[corpus]", role, asked, "names a column, which a folder of .txt files does not have")
    with faults_named(path):
        files = sorted(found for found in path.rglob("*.txt") if found.is_file())
    if not files:
        raise unknown_format(path)
    total, done = sum(map(size_of, files)), 0
    for file in files:
        with faults_named(file), file.open("rb") as stream:
            raw = stream.read(LIMIT + 1)
        if len(raw) > LIMIT:
            raise document_too_long(file, 1)
        done += size_of(file)
        folders = file.relative_to(path).parts[:-1]
        yield Record(decoded(raw, file, 1), label=folders[0] if folders else None)
        if on_progress:
            on_progress(done, total)


def unknown_format(path: Path) -> Mistake:
    """A path that no reader takes."""
    return Mistake(
        "{path} is neither a file in a known format nor a folder with .txt files",
        hint="use .jsonl, .csv or .tsv (each also .gz), .parquet, or a folder of .txt files",
        path=str(path),
    )


# ---- the reader of a path ---------------------------------------------------------------------------------------------


Reader = Callable[[Path, Columns, OnProgress | None], Iterator[Record]]


READERS = Registry(
    "corpus reader",
    "securetm.corpora",
    "collections.abc:Callable",
    {  # by the ending of the files that a reader reads
        "csv": "securetm.corpus.readers:table_records",
        "csv.gz": "securetm.corpus.readers:table_records",
        "jsonl": "securetm.corpus.readers:jsonl_records",
        "jsonl.gz": "securetm.corpus.readers:jsonl_records",
        "ndjson": "securetm.corpus.readers:jsonl_records",
        "ndjson.gz": "securetm.corpus.readers:jsonl_records",
        "parquet": "securetm.corpus.readers:parquet_records",
        "tsv": "securetm.corpus.readers:table_records",
        "tsv.gz": "securetm.corpus.readers:table_records",
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
    Without a tokeniser, markup and quotes are dropped and stop words are those of the texts' language; a warning names another
    one than English.
    `embed` makes embeddings of the texts where the file has none (`TextEmbedder.embed`).
    A document is named by its `id` where a column is given, else by what it says: no name depends on another document or on a
    place in the file. Names become keys under `secret` and under `name`, or the file's name; without a secret anybody who
    guesses a document can compute its key. Documents without a word are left out, and counted in `skipped`.
    """
    place, records = records_of(path, Columns(text, label, party, date, person, embedding, id), on_progress)
    first = list(islice(records, GLANCE if tokeniser is None else 0))
    by = tokeniser or tokeniser_of(one.text for one in first)
    builder = CorpusBuilder(by, name=name or place.name, source=str(place), embed=embed, secret=secret)
    for found in chain(first, records):
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
    usual = {name: allowed[0] for name, allowed in LATER.items()}
    manifest, wanted = Manifest.read_from(folder), tokeniser.settings() or {"words": "a function"}
    for setting, value in {**usual, **wanted}.items():
        found = manifest.tokeniser.get(setting, usual.get(setting))
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


@dataclass(frozen=True)
class Glance:
    """What the first documents of a source show to whoever holds them; it is not sent."""

    language: str | None  # the code of the language that they are written in; None: it cannot be told
    has_parties: bool  # whether a column names who holds each
    surely: bool = False  # whether each third of them reads as that language, in which a document has a small share
    length: float = 0.0  # words of the middle one but stop words, to one digit; 0: a single document may decide it


def glance(path: str | Path, columns: Columns) -> Glance:
    """Reads the first documents of a source; of a corpus on disk, which holds no texts, nothing can be told."""
    if is_stored(Path(path)):
        return Glance(None, False)
    first = list(islice(records_of(path, columns)[1], GLANCE))
    seen = language_seen(one.text for one in first)
    return Glance(seen.code, any(one.party for one in first), seen.surely, _length(first, seen.foreign or ENGLISH_LIST))


_MIDDLE = 3  # documents: with another one in place of any, the middle one is among them


def _length(first: Sequence[Record], stop_words: str) -> float:
    """How many words documents like these have but stop words; 0 where one document more or less may change what is said."""
    words = Tokeniser(stop_words=stop_words, **RECOMMENDED)
    lengths = sorted(sum(map(len, words.sentences(one.text))) for one in first)
    middle = lengths[max(len(lengths) // 2 - _MIDDLE // 2, 0) :][:_MIDDLE]
    said = {float(f"{length:.1g}") for length in middle}
    return said.pop() if len(said) == 1 and len(middle) == _MIDDLE else 0.0


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
