"""Refuses documents that lack what a model reads, by name and before anything is learned. It reads no document."""

from __future__ import annotations

from typing import Any

from securetm.contracts import Array, Reads, TopicModel
from securetm.models.model_errors import NoEmbeddings, NoSentences, OtherEmbeddings


def check_needs(model: TopicModel, documents: Any) -> None:
    """Raises unless the documents have the sentences, or embeddings of the size, that the model reads."""
    if Reads.SENTENCES in model.reads and documents.sentence_ends is None:
        raise NoSentences()
    if model.embedding_size:
        check_embeddings(documents.embeddings, model.embedding_size)


def check_embeddings(embeddings: Array | None, size: int) -> Array:
    """The embeddings, if there are any and each has so many numbers."""
    if embeddings is None:
        raise NoEmbeddings(size)
    if embeddings.ndim != 2 or embeddings.shape[1] != size:
        raise OtherEmbeddings(embeddings.shape[-1], size)
    return embeddings
