"""What a document says, as 16 bytes: the same wherever it lies, whatever file, order or tokeniser it was read through.

It hides nothing: who has a text finds its digest. Whoever keeps digests of secret documents keys them.
"""

from __future__ import annotations

import hashlib
import unicodedata

import numpy as np

from securetm.contracts import Array
from securetm.corpus.counted_documents import CountedDocuments

DIGEST = 16


def text_digest(text: str) -> bytes:
    """Of the text without the case of its letters, with any white space between its words counted as one blank."""
    plain = " ".join((text.casefold() if text.isascii() else _without_case(text)).split())
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=DIGEST, person=b"text").digest()


def _without_case(text: str) -> str:
    """Capitals first, since some letters share theirs; twice, since a letter taken apart may show further ones with a case."""
    known = unicodedata.normalize("NFKD", text)
    for _ in range(2):
        known = unicodedata.normalize("NFKD", known.upper().casefold())
    return known


def content_digests(documents: CountedDocuments) -> Array:
    """One row for each document: of its text, or where only words were ever known, of how often each occurs."""
    if documents.texts is not None:
        return documents.texts
    made = bytearray()
    for row in range(len(documents)):
        part = slice(documents.counts.indptr[row], documents.counts.indptr[row + 1])
        words = (documents.vocabulary[place] for place in documents.counts.indices[part])
        counted = sorted(f"{word} {count}" for word, count in zip(words, documents.counts.data[part], strict=True))
        made += hashlib.blake2b("\n".join(counted).encode(), digest_size=DIGEST, person=b"counts").digest()
    return np.frombuffer(bytes(made), np.uint8).reshape(-1, DIGEST)
