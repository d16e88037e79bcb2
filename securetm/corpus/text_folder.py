"""A folder of .txt files, one document each; the first subfolder is its label. It keeps one file in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from securetm.corpus.building import Record
from securetm.corpus.columns import ROLES, Columns
from securetm.corpus.corpus_errors import DocumentTooLong, UnknownFormat
from securetm.corpus.files import LIMIT, MEGABYTES, OnProgress, decoded, faults_named, size_of
from securetm.errors import BadSetting


def folder_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a folder and its subfolders, in the order of their names."""
    for role in ROLES:
        if asked := getattr(columns, role):
            raise BadSetting("[corpus]", role, asked, "names a column, which a folder of .txt files does not have")
    with faults_named(path):
        files = sorted(found for found in path.rglob("*.txt") if found.is_file())
    if not files:
        raise UnknownFormat(str(path))
    total, done = sum(map(size_of, files)), 0
    for file in files:
        text = _text(file)
        done += size_of(file)
        folders = file.relative_to(path).parts[:-1]
        yield Record(text, label=folders[0] if folders else None)
        if on_progress:
            on_progress(done, total)


def _text(file: Path) -> str:
    with faults_named(file), file.open("rb") as stream:
        raw = stream.read(LIMIT + 1)
    if len(raw) > LIMIT:
        raise DocumentTooLong(str(file), 1, MEGABYTES)
    return decoded(raw, file, 1)
