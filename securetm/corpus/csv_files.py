"""CSV and TSV with a first line of column names, also gzipped. It keeps one row in memory, never the file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from securetm.corpus.building import Record
from securetm.corpus.columns import Columns, check_names, record
from securetm.corpus.corpus_errors import BadTable, DocumentTooLong, EmptyFile
from securetm.corpus.files import LIMIT, MEGABYTES, Lines, OnProgress


def table_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .csv or .tsv file. Line numbers in errors are those of the last line of the row."""
    rows = _rows(path, on_progress)
    line, header = next(rows, (0, []))
    if not header:
        raise EmptyFile(str(path))
    check_names(header, path, line)
    roles = columns.found_in(header, path, line)
    places = {role: header.index(column) for role, column in roles.items()}
    found = False
    for line, row in rows:
        if len(row) != len(header):
            raise BadTable(str(path), line, f"the row has {len(row)} cells where the first line names {len(header)}")
        found = True
        yield record({role: row[place] or None for role, place in places.items()}, path, line)
    if not found:
        raise EmptyFile(str(path))


def _rows(path: Path, on_progress: OnProgress | None) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows that are not blank."""
    if csv.field_size_limit() < LIMIT:
        csv.field_size_limit(LIMIT)  # a setting of the whole process, so it is only ever raised
    lines = (line for _, line in Lines(path, on_progress))
    first = next(lines, "")
    # A tab in .tsv; in .csv a comma, or the semicolon that spreadsheets write where the comma is the decimal point.
    delimiter = "\t" if ".tsv" in path.suffixes else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as fault:
        if "field larger than field limit" in str(fault):
            raise DocumentTooLong(str(path), reader.line_num, MEGABYTES) from None
        raise BadTable(str(path), reader.line_num, "the double quotes or line breaks of this row do not fit") from None
