"""A corpus on disk: named arrays in a zip with checksums, no pickle, strings as UTF-8. It is not a format for exchange.

The file is written under another name and then moved, so that a reader finds the old file or the new one, never a part of one.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.corpus_errors import DamagedFile, OtherVersion, UnlikeParts
from securetm.corpus.counted_documents import CountedDocuments
from securetm.corpus.length_limits import check_stored
from securetm.errors import CannotWrite, NoSuchPath, Unreadable
from securetm.private_files import make_folder, writing

D = TypeVar("D", bound=CountedDocuments)
VERSION = 1
_STRINGS = ("vocabulary", "labels", "parties", "dates")
_NUMBERS = ("keys", "tokens", "token_ends", "sentence_ends", "embeddings", "persons", "texts", "block_numbers")


def save_documents(documents: CountedDocuments, path: Path) -> None:
    """Writes the documents, for their owner alone to read; the same documents give the same bytes."""
    arrays: dict[str, Array] = {"version": np.array([VERSION]), "skipped": np.array([documents.skipped])}
    if documents.block_documents != BLOCK_DOCUMENTS:
        arrays["block_documents"] = np.array([documents.block_documents])
    arrays |= {f"counts.{part}": getattr(documents.counts, part) for part in ("data", "indices", "indptr")}
    arrays |= {column: getattr(documents, column) for column in _NUMBERS if getattr(documents, column) is not None}
    for column in _STRINGS:
        if getattr(documents, column) is not None:
            arrays |= _packed(column, [str(entry) for entry in getattr(documents, column)])
    save_arrays(path, arrays | _packed("names", [documents.name, documents.people]))


def save_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Writes named arrays, whole or not at all."""
    try:
        make_folder(path.parent)
        _replace(path, arrays)
    except OSError as fault:
        raise CannotWrite(str(path), fault.strerror or type(fault).__name__) from fault


def _replace(path: Path, arrays: dict[str, Array]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with writing(beside) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mistakes the arrays for its keywords
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        if beside.exists():
            beside.unlink()


def documents_in(kind: type[D], arrays: dict[str, Array], path: Path) -> D:
    """The documents of that kind in the arrays of a file, or its fault."""
    version = int(arrays["version"][0]) if "version" in arrays else -1
    if version != VERSION:
        raise OtherVersion(str(path), version, VERSION)
    try:
        return _documents(kind, arrays)
    except (KeyError, IndexError, ValueError, TypeError, UnicodeDecodeError, UnlikeParts) as fault:
        raise DamagedFile(str(path), f"its parts do not fit together ({type(fault).__name__})") from fault


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file, each compared with its checksum."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except FileNotFoundError as fault:
        raise NoSuchPath(str(path)) from fault
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as fault:
        raise DamagedFile(str(path), "it is not a whole corpus file") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # reading on to the end makes zipfile compare the checksum
            raise zipfile.BadZipFile(name)
        return array


def _documents(kind: type[D], arrays: dict[str, Array]) -> D:
    vocabulary = tuple(_unpacked(arrays, "vocabulary"))
    parts = tuple(arrays[f"counts.{part}"] for part in ("data", "indices", "indptr"))
    counts = sparse.csr_array(parts, shape=(len(arrays["keys"]), len(vocabulary)))
    counts.check_format(full_check=True)
    check_stored(counts)
    columns: dict[str, Any] = {name: arrays[name] for name in _NUMBERS if name in arrays}
    columns |= {c: np.array(_unpacked(arrays, c), dtype=np.str_) for c in _STRINGS[1:] if f"{c}.ends" in arrays}
    name, people = _unpacked(arrays, "names")
    if "block_documents" in arrays:
        columns["block_documents"] = int(arrays["block_documents"][0])
    return kind(counts, vocabulary, **columns, name=name, people=people, skipped=int(arrays["skipped"][0]))


def _packed(column: str, strings: list[str]) -> dict[str, Array]:
    pieces = [string.encode("utf-8") for string in strings]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return {f"{column}.utf8": np.frombuffer(b"".join(pieces), np.uint8), f"{column}.ends": ends}


def _unpacked(arrays: dict[str, Array], column: str) -> list[str]:
    whole, ends = arrays[f"{column}.utf8"].tobytes(), arrays[f"{column}.ends"].tolist()
    if whole.isascii():  # then bytes are characters, and one decoding serves all
        text = whole.decode("ascii")
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [whole[start:end].decode("utf-8") for start, end in zip([0, *ends], ends, strict=False)]
