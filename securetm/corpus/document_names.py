"""What a document is called by before any secret: a digest of its id, or of all that it says, and its number among equals.

Two documents of one digest are equal in everything that any step reads, so it does not matter which of them has which number;
and with one of them less, the last number is free. So no document's name depends on a document that differs from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array

DIGEST = 16
_WORDS = 1 << 20  # whose digests are side by side in memory
_NAMED = ("labels", "parties", "dates", "persons")  # what is known of a document beside its words


def text_name(text: str, known: Iterable[str | None], embedding: Array | None) -> bytes:
    """The digest of a document as it was read, with all that is known of it."""
    parts = [_raw(part) for part in (text, *known)]
    return _digest(parts if embedding is None else [*parts, embedding.astype("<f4").tobytes()], b"text")


def id_name(number: str) -> bytes:
    """The digest of a document that its source numbers, whatever it says."""
    return _digest([_raw(number)], b"id")


def names_of_counts(counts: Any, vocabulary: Sequence[str], columns: dict[str, Any]) -> Array:
    """The digests of documents of which nothing but counts and columns is known. The order of the words does not matter."""
    alphabet = np.argsort(np.argsort(np.asarray(vocabulary, dtype=object))) if vocabulary else np.zeros(0, np.int64)
    words, known = _word_digests(vocabulary), _known(columns, counts.shape[0])
    found = bytearray()
    for first, last, begin, end in _stretches(counts.indptr):
        places = counts.indices[begin:end]
        document = np.repeat(np.arange(last - first), np.diff(counts.indptr[first : last + 1]))
        order = np.lexsort((alphabet[places], document))
        times = counts.data[begin:end].astype("<f8").view(np.uint8).reshape(-1, 8)
        raw = memoryview(np.hstack([words[places], times])[order].tobytes())
        ends = (counts.indptr[first : last + 1] - begin) * (DIGEST + 8)
        for row in range(last - first):
            found += _digest([raw[ends[row] : ends[row + 1]], next(known)], b"counts")
    return np.frombuffer(bytes(found), np.uint8).reshape(-1, DIGEST)


def names_of_tokens(
    tokens: Array, token_ends: Array, sentence_ends: Array, vocabulary: Sequence[str], columns: dict[str, Any]
) -> Array:
    """The digests of documents by their words in reading order, where sentences end, and the columns."""
    words, known = _word_digests(vocabulary), _known(columns, len(token_ends))
    starts = np.concatenate([np.zeros(1, np.int64), token_ends])
    sentences = np.searchsorted(sentence_ends, starts, side="right")
    found = bytearray()
    for first, last, begin, end in _stretches(starts):
        raw = memoryview(words[tokens[begin:end]].tobytes())
        for row in range(first, last):
            said = raw[(starts[row] - begin) * DIGEST : (starts[row + 1] - begin) * DIGEST]
            cut = sentence_ends[sentences[row] : sentences[row + 1]] - starts[row]
            found += _digest([said, cut.astype("<i8").tobytes(), next(known)], b"tokens")
    return np.frombuffer(bytes(found), np.uint8).reshape(-1, DIGEST)


def copy_numbers(digests: Array) -> Array:
    """The number of each document among those of its digest: 0 for the first one."""
    if not len(digests):
        return np.zeros(0, dtype=np.int64)
    words = np.ascontiguousarray(digests).view("<u8").reshape(-1, 2)
    order = np.lexsort((words[:, 0], words[:, 1]))
    same = np.concatenate([[False], (words[order[1:]] == words[order[:-1]]).all(axis=1)])
    places = np.arange(len(order))
    heads = np.maximum.accumulate(np.where(same, 0, places))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = places - heads  # lexsort is stable, so equal documents are in the order in which they came
    return numbers


def _known(columns: dict[str, Any], documents: int) -> Iterator[bytes]:
    """What the columns say of each document, in bytes."""
    held = [columns.get(name) for name in _NAMED]
    rows = {name: np.ascontiguousarray(columns[name]) for name in ("embeddings", "texts") if columns.get(name) is not None}
    for row in range(documents):
        parts = [b"" if one is None else _raw(str(one[row])) for one in held]
        yield _joined([*parts, *(one[row].tobytes() for one in rows.values())])


def _stretches(ends: Array) -> Iterator[tuple[int, int, int, int]]:
    """Runs of documents with so many words in all: the first, the one after the last, and where their words begin and end."""
    first, documents = 0, len(ends) - 1
    while first < documents:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _WORDS, side="right")) - 1)
        yield first, last, int(ends[first]), int(ends[last])
        first = last


def _word_digests(vocabulary: Sequence[str]) -> Array:
    raw = b"".join(hashlib.blake2b(_raw(word), digest_size=DIGEST, person=b"word").digest() for word in vocabulary)
    return np.frombuffer(raw, np.uint8).reshape(-1, DIGEST)


def _digest(parts: Sequence[bytes | memoryview], kind: bytes) -> bytes:
    return hashlib.blake2b(_joined(parts), digest_size=DIGEST, person=kind).digest()


def _joined(parts: Sequence[bytes | memoryview]) -> bytes:
    """All parts, each behind its length, so that no two lists of parts give the same bytes."""
    return b"".join(piece for part in parts for piece in (len(part).to_bytes(8, "little"), part))


def _raw(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "surrogatepass")
