"""What a document is called by, before a secret and under one.

Its name is a digest of its id, or of all that it says, and its number among equals. Two documents of one digest are equal in
everything that any step reads, so it does not matter which of them has which number; and with one of them less, the last number
is free. So no document's name depends on a document that differs from it.

Its key is 64 bits by which everything about it is decided: the CBC-MAC with AES-128 of two blocks, the digest of 128 bits and
the number, under a secret of whoever holds it. All messages have two blocks, for which a CBC-MAC is pseudorandom. Without a
secret of the holder's own, the source's name is the secret, which anybody can guess. No guarantee rests on the secret: it keeps
strangers from knowing in which batch, on which side of the split or behind which draws a document is that they guess. The coins
of sampling that amplifies privacy are fresh and do not depend on keys.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array

DIGEST = 16


def text_digest(text: str) -> bytes:
    """The digest of a text. Case is ignored, and any white space between words is one blank."""
    plain = " ".join((text.casefold() if text.isascii() else _without_case(text)).split())
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=DIGEST, person=b"text").digest()


def _without_case(text: str) -> str:
    """The text in lower case. Upper case comes first, since some letters share a capital; decomposition may give new capitals,
    so both steps are taken twice."""
    known = unicodedata.normalize("NFKD", text)
    for _ in range(2):
        known = unicodedata.normalize("NFKD", known.upper().casefold())
    return known


def content_digests(documents: Any) -> Array:
    """One row per document: the digest of its text or, where the text was never known, of its counts."""
    known: Array | None = documents.texts
    if known is not None:
        return known  # of documents on disk, read as a stream
    made = bytearray()
    for row in range(len(documents)):
        part = slice(documents.counts.indptr[row], documents.counts.indptr[row + 1])
        words = (documents.vocabulary[place] for place in documents.counts.indices[part])
        counted = sorted(f"{word} {count}" for word, count in zip(words, documents.counts.data[part], strict=True))
        made += hashlib.blake2b("\n".join(counted).encode(), digest_size=DIGEST, person=b"counts").digest()
    return np.frombuffer(bytes(made), np.uint8).reshape(-1, DIGEST)


SECRET = 16  # bytes
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def secret_of(source: str, held: bytes = b"") -> bytes:
    """The secret for the documents of one source, from the holder's secret. Without one it is public."""
    return hashlib.blake2b(_raw(source), key=held, digest_size=SECRET, person=b"names").digest()


def content_keys(secret: bytes, digests: Array, copies: Array) -> Array:
    """The keys of documents: of their digests, a row of 16 bytes each, and their numbers among equal documents."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # most commands read no document

    encryptor = Cipher(algorithms.AES128(secret), modes.ECB()).encryptor()  # noqa: S305 - a MAC's block cipher, block by block

    def encrypted(blocks: Array) -> Array:
        return np.frombuffer(encryptor.update(blocks.tobytes()), "<u8").reshape(-1, 2)

    first = encrypted(np.ascontiguousarray(digests)).astype(np.uint64)
    first[:, 0] ^= copies.astype(np.uint64)
    return encrypted(first.astype("<u8"))[:, 0].astype(np.uint64)


def document_keys(source: str, documents: int | Array) -> Array:
    """Keys of documents 0, 1, ... of a source, or of those with the given numbers, whatever these documents say.

    They name documents whose number is no secret and never changes: a made-up one's in its stream, and one's in its file where
    single words are protected, whose neighbours have equally many documents of equal lengths in the same order.
    """
    numbers = np.arange(documents, dtype=np.uint64) if isinstance(documents, int) else documents.astype(np.uint64)
    start = int.from_bytes(hashlib.blake2b(_raw(source), digest_size=8).digest(), "little")
    return _scrambled(numbers + np.uint64(start))


def mixed(keys: Array, seed: int | str) -> Array:
    """Pseudorandom 64-bit numbers, one per key, that depend on key and seed only; distinct ones for distinct keys."""
    salt = hashlib.blake2b(str(seed if isinstance(seed, str) else int(seed)).encode(), digest_size=8).digest()
    return _scrambled(keys ^ np.uint64(int.from_bytes(salt, "little")))


def uniform(numbers: Array) -> Array:
    """The same numbers as fractions from 0 up to 1."""
    fractions: Array = (numbers >> np.uint64(11)) * 2.0**-53
    return fractions


def _scrambled(numbers: Array) -> Array:
    """Steele, Lea and Flood's SplitMix64 (OOPSLA 2014), a bijection."""
    z = (numbers + np.uint64(1)) * _GOLDEN  # wraps around, as it should
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


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
