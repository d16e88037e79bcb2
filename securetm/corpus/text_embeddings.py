"""Turns texts into embeddings with a sentence model, and keeps them on disk. Nothing here sends anything.

Each text is embedded alone, so that no document's embedding depends on another document: a library rounds the rows of a product
by how many there are. On a processor this costs no time; several at once are faster on a GPU only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.corpus.embedding_cache import KEPT_AS, EmbeddingCache, cache_folder
from securetm.corpus.sentence_models import USUAL, LoadedModel, SentenceModel, find_sentence_model

OnEmbedded = Callable[[int, int], None]  # texts embedded, texts in all
MAX_TOKENS = 128
_KEPT_AT_ONCE = 64  # texts between two writes to disk


@dataclass(frozen=True)
class TextEmbedder:
    """One way to turn texts into embeddings. The same text always has the same embedding, unless `batch` is above 1."""

    name: str = USUAL  # of a sentence-transformers model, or its folder
    digest: str = ""  # of its weights; nothing: any
    max_tokens: int = MAX_TOKENS  # of a text that are read; 0: as many as the model can
    batch: int = 1  # texts at once
    folder: Path = field(default_factory=cache_folder)  # in which embeddings are kept

    @property
    def identity(self) -> str:
        """The name of the embeddings that this makes: equal names, equal embeddings of a text."""
        together = "alone" if self.batch == 1 else "together"
        return f"{self._checked.digest[:32]}-{self.max_tokens}-{together}"

    def embed(self, texts: Sequence[str], on_progress: OnEmbedded | None = None) -> Array:
        """The embeddings of the texts: texts x size. Those that are kept on disk are not computed again."""
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        cache = EmbeddingCache(self.folder / f"{self.identity}.sqlite", self._checked.size)
        known = cache.found(list(dict.fromkeys(digests)))
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        told, total = on_progress or (lambda _done, _total: None), len(known) + len(missing)
        for part in self._parts(missing):
            told(len(known), total)
            numbers = self._computed([missing[digest] for digest in part])
            cache.keep(part, numbers)
            known |= dict(zip(part, numbers, strict=True))
        told(total, total)
        rows = [known[digest] for digest in digests]
        return np.stack(rows) if rows else np.zeros((0, self._checked.size), np.float32)

    def _parts(self, missing: dict[bytes, str]) -> list[list[bytes]]:
        """Texts that are kept together, of like length where several are embedded at once."""
        order = list(missing)
        if self.batch > 1:
            order.sort(key=lambda digest: (len(missing[digest]), digest))
        size = max(self.batch, _KEPT_AT_ONCE)
        return [order[first : first + size] for first in range(0, len(order), size)]

    def _computed(self, texts: list[str]) -> Array:
        """Rounded to half precision, as they are kept: a kept embedding and a fresh one are the same."""
        numbers = np.nan_to_num(self._loaded.embed(texts, self.batch), nan=0.0, posinf=0.0, neginf=0.0)
        most = float(np.finfo(KEPT_AS).max)
        rounded: Array = np.clip(numbers, -most, most).astype(KEPT_AS).astype(np.float32)
        return rounded

    @cached_property
    def _checked(self) -> SentenceModel:
        found = find_sentence_model(self.name)
        found.check(self.digest)
        return found

    @cached_property
    def _loaded(self) -> LoadedModel:
        return self._checked.load(self.max_tokens)
