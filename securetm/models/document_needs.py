"""Refuses documents that lack what a model reads, by name and before anything is learned. It reads no document."""

from __future__ import annotations

from typing import Any

from securetm.contracts import Array, Reads, TopicModel
from securetm.models.model_errors import NoEmbeddings, NoSentences, OtherEmbeddings


def check_needs(model: TopicModel, documents: Any) -> None:
    """Raises unless the documents have the sentences, or embeddings of the size, that the model reads."""
    if Reads.SENTENCES in model.reads and not documents.has_sentences:
        raise NoSentences()
    if model.embedding_size:
        check_width(documents.embedding_width, model.embedding_size)


def check_embeddings(embeddings: Array | None, size: int) -> Array:
    """The embeddings, if there are any and each has so many numbers."""
    check_width(0 if embeddings is None or not embeddings.ndim else embeddings.shape[-1], size)
    assert embeddings is not None
    return embeddings


def check_width(found: int, size: int) -> None:
    """Refuses embeddings that have another number of numbers, of which 0 means that there are none."""
    if not found:
        raise NoEmbeddings(size)
    if found != size:
        raise OtherEmbeddings(found, size)
