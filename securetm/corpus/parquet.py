"""Parquet by batches of rows, with gFedNTM's columns `bow_text`, `embeddings` and `fos`. It reads no column without a role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from securetm.corpus.building import Record
from securetm.corpus.columns import USUAL_IN_PARQUET, Columns, check_names, record
from securetm.corpus.corpus_errors import BadCell, DamagedFile, DocumentTooLong, EmptyFile, WrongEncoding
from securetm.corpus.files import LIMIT, MEGABYTES, OnProgress, decoded, faults_named, size_of

_ROWS = 256  # of a batch: the longest documents must still fit into memory
_BUFFER = 1 << 20  # bytes of a column that are read at once: a group of rows may be as large as the file


def parquet_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .parquet file; "line" in errors is the number of the row, from 1."""
    total = size_of(path)
    if not total:
        raise EmptyFile(str(path))
    try:
        with faults_named(path), parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            names = file.schema_arrow.names
            check_names(names, path, 1)
            roles = columns.found_in(names, path, 1, USUAL_IN_PARQUET)
            if not file.metadata.num_rows:
                raise EmptyFile(str(path))
            for row, cells in enumerate(_cells(file, roles), 1):
                yield record(_as_text(cells, path, row), path, row)
                if on_progress and (row % _ROWS == 0 or row == file.metadata.num_rows):
                    on_progress(total * row // file.metadata.num_rows, total)
    except UnicodeDecodeError:
        raise DamagedFile(str(path), "a column of strings is not UTF-8") from None  # its own words quote the bytes
    except pyarrow.ArrowException as fault:
        raise DamagedFile(str(path), "it is not a whole Parquet file") from fault


def _cells(file: Any, roles: dict[str, str]) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=_ROWS, columns=list(roles.values()), use_threads=False):
        columns = {role: _values(_undecoded(batch.column(column), role)) for role, column in roles.items()}
        for row in range(batch.num_rows):
            yield {role: values[row] for role, values in columns.items()}


def _undecoded(column: Any, role: str) -> Any:
    """Texts as bytes: a Parquet file may hold wrong UTF-8, and the error has to name the row."""
    if role != "text" or not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return column
    return column.cast(pyarrow.large_binary())


def _values(column: Any) -> Any:
    """One entry per row; vectors of one width stay numbers instead of becoming Python objects."""
    kind = column.type
    if pyarrow.types.is_fixed_size_list(kind) and not column.null_count:
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), kind.list_size)
    if (pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)) and pyarrow.types.is_floating(kind.value_type):
        return [None if not cell.is_valid else cell.values.to_numpy(zero_copy_only=False) for cell in column]
    return column.to_pylist()


def _as_text(cells: dict[str, Any], path: Path, row: int) -> dict[str, Any]:
    text = cells["text"]
    if text is not None and not isinstance(text, (str, bytes)):
        raise BadCell(str(path), row, "text", f"is of type {type(text).__name__}, not a string")
    if text is not None and len(text) > LIMIT:
        raise DocumentTooLong(str(path), row, MEGABYTES)
    if isinstance(text, bytes):
        return {**cells, "text": _decoded(text, path, row)}
    return cells


def _decoded(raw: bytes, path: Path, row: int) -> str:
    try:
        return decoded(raw, path, row)
    except WrongEncoding:
        raise WrongEncoding(str(path), row) from None  # a row may hold many lines
