"""Reads a corpus from any path: chooses the reader by the name of the file. It knows no format itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from securetm.corpus.building import CorpusBuilder, Record
from securetm.corpus.columns import Columns
from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_errors import UnknownFormat
from securetm.corpus.csv_files import table_records
from securetm.corpus.files import OnProgress
from securetm.corpus.jsonl import jsonl_records
from securetm.corpus.text_folder import folder_records
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import NoSuchPath

Reader = Callable[[Path, Columns, OnProgress | None], Iterator[Record]]


def _parquet_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    from securetm.corpus.parquet import parquet_records  # pyarrow is imported for Parquet files only

    return parquet_records(path, columns, on_progress)


READERS: dict[str, Reader] = {
    ".jsonl": jsonl_records,
    ".ndjson": jsonl_records,
    ".csv": table_records,
    ".tsv": table_records,
    ".parquet": _parquet_records,
}


def read_corpus(
    path: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    party: str | None = None,
    date: str | None = None,
    person: str | None = None,
    embedding: str | None = None,
    tokeniser: Tokeniser | None = None,
    name: str | None = None,
    keep_empty: bool = False,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """Reads documents from .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of .txt files, one at a time.

    Each keyword names the column that plays the role. Without one, a column that is called like the role plays it (in Parquet
    `bow_text` and `fos` come before `text` and `label`); only text must be there. A folder's label is the subfolder.
    `name`, else the file's, makes the documents' keys. Documents without a word are left out, and counted in `skipped`.
    """
    path = Path(path)
    columns = Columns(text, label, party, date, person, embedding)
    builder = CorpusBuilder(tokeniser or Tokeniser(), name=name or path.name, source=str(path))
    for found in _reader(path)(path, columns, on_progress):
        builder.add(found)
    return builder.finish(Corpus, keep_empty=keep_empty)


def is_corpus(path: Path) -> bool:
    """Whether a path looks like documents: a folder, or a file with an ending that a reader takes."""
    return path.is_dir() or Path(path.name.removesuffix(".gz")).suffix.lower() in READERS


def _reader(path: Path) -> Reader:
    if path.is_dir():
        return folder_records
    if not path.exists():
        raise NoSuchPath(str(path))
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in READERS or (ending == ".parquet" and path.suffix == ".gz"):
        raise UnknownFormat(str(path))
    return READERS[ending]
