"""A digest of a document's content: the same 16 bytes for every file, order and tokeniser it was read with.

It hides nothing: anybody who has a text can compute its digest. Whoever stores digests of secret documents must key them.
"""

from __future__ import annotations

import hashlib
import unicodedata
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
