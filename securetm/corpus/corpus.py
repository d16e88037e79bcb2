"""The corpus: documents as counts, made from texts, other corpora or a file, and saved to one.

The modules that build, join and store documents know only `CountedDocuments`; this file tells them to make a `Corpus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from securetm.corpus.building import documents_of_strings
from securetm.corpus.counted_documents import CountedDocuments
from securetm.corpus.joining import joined
from securetm.corpus.shards.manifest import is_stored
from securetm.corpus.shards.sharded_corpus import CHOICE, ShardedCorpus
from securetm.corpus.stored import documents_in, read_arrays, save_documents
from securetm.corpus.tokeniser import Tokeniser


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(CountedDocuments):
    """A collection of documents over one vocabulary, made from texts, counts, other corpora or a file."""

    @classmethod
    def from_strings(cls, texts: Iterable[str], *, tokeniser: Tokeniser | None = None, **columns: Any) -> Self:
        """A corpus from texts, as scikit-learn takes them; labels=, persons=, ... have one entry per text, name= gives keys."""
        return documents_of_strings(cls, texts, tokeniser=tokeniser, **columns)

    @classmethod
    def concat(cls, corpora: Sequence[Self], *, name: str = "") -> Self:
        """All documents in one corpus, over the union of their vocabularies in alphabetical order. Keys are kept.

        Two documents with the same key are refused: a party would count the document twice.
        """
        return joined(cls, corpora, name=name)

    def save(self, path: str | Path) -> None:
        """Writes one file without pickle; it appears whole or not at all."""
        save_documents(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self | ShardedCorpus:
        """Reads what `save` wrote, or opens a folder that `securetm corpus build` wrote, checked."""
        path = Path(path)
        if is_stored(path):
            return ShardedCorpus.open(path)
        arrays = read_arrays(path)
        return ShardedCorpus.chosen_in(arrays, path) if CHOICE in arrays else documents_in(cls, arrays, path)


PartyCorpus = Corpus | ShardedCorpus  # the documents of a party, in memory or on disk
