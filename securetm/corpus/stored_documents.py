"""Documents of a corpus on disk: chosen and shown in other words without reading them, and read where they are asked for.

They are the same as those in memory that were read from the same source. In memory is a number for each chosen document; a
figure of every document is computed as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array
from securetm.corpus.blocks import places_of_each
from securetm.corpus.document_names import content_keys, document_keys, secret_of
from securetm.corpus.held_documents import HeldDocuments, places_of
from securetm.corpus.store import (
    FEW,
    BlockColumns,
    CorpusStore,
    chosen_documents,
    counts_of,
    damaged_shard,
    joined_documents,
    opened,
    store_at,
)
from securetm.data_classes import dataclass, field, replace
from securetm.errors import Mistake


@dataclass(frozen=True, eq=False)
class StoredDocuments:
    """Documents of a corpus on disk, all or some of them. Pickled, they take no document with them."""

    store: CorpusStore
    source: str  # the name that makes keys with the secret
    secret: bytes = field(default=b"", repr=False)  # of whoever holds them, under which their names become keys
    rows: Array | range | None = field(default=None, repr=False)  # in the store, in the order of the corpus; None: all
    words: tuple[str, ...] | None = field(default=None, repr=False)  # in which they are read instead of their own
    party: str | None = None  # the name of the party that holds all of them
    are_named: bool = True  # whether it is said whose they are
    by_place: bool = False  # whether their numbers make keys, and not what they say
    names: tuple[str, ...] | None = field(default=None, repr=False)  # of the stored words, where they have others

    def __len__(self) -> int:
        return self.store.manifest.documents if self.rows is None else len(self.rows)

    def __reduce__(self) -> Any:
        seen = (self.store, self.source, self.secret)
        shown = (self.words, self.party, self.are_named, self.by_place, self.names)
        if not isinstance(self.rows, np.ndarray) or not len(self.rows) or (np.diff(self.rows) <= 0).any():
            return StoredDocuments, (*seen, self.rows, *shown)
        first = int(self.rows[0])  # a bit for each document says which are there
        there = np.zeros(int(self.rows[-1]) - first + 1, dtype=bool)
        there[self.rows - first] = True
        return _unpacked, (*seen, first, np.packbits(there), *shown)

    folder = property(attrgetter("store.folder"), doc="Where they lie.")
    stored_blocks = property(lambda self: len(self.store.manifest.blocks), doc="The blocks of the whole store.")
    embedding_width = property(attrgetter("store.manifest.width"), doc="Numbers in the embedding of a document, or 0.")
    embedded_as = property(
        lambda self: self.store.manifest.columns.get("embedding", ""),
        doc="The name of the embeddings that were made of the texts, or of their column.",
    )
    has_sentences: ClassVar[bool] = True

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words in which documents are read."""
        return (self.names or self.store.vocabulary) if self.words is None else self.words

    @property
    def has_persons(self) -> bool:
        """Whether it is known whose each document is."""
        return self.are_named and "person" in self.store.manifest.names

    # ---- columns, as a stream ----------------------------------------------------------------------------------------

    @cached_property
    def keys(self) -> Array:
        """The key of each document."""
        return self._keys({name: self._column(name) for name in ("digests", "copies", "rows")})

    @cached_property
    def persons(self) -> Array | None:
        """Whose each document is, if it is known."""
        return self._column("person").astype(np.int64) - 1 if self.has_persons else None

    texts = property(lambda self: self._column("texts"), doc="The digest of each document's text.")
    labels = property(lambda self: self._names("label"), doc="The label of each document.")
    dates = property(lambda self: self._names("date"), doc="The date of each document.")

    @property
    def parties(self) -> Array | None:
        """The party of each document."""
        return self._names("party") if self.party is None else np.full(len(self), self.party)

    def _column(self, name: str) -> Array:
        found: Array | None = None
        for places in self.by_stored_block():
            rows = self._stored(places)
            block = self.store.block_of(int(rows[0]))
            column = self.store.columns(block)[name][np.asarray(rows) - self.store.starts[block]]
            if found is None:
                found = np.empty((len(self), *column.shape[1:]), dtype=column.dtype)
            found[np.asarray(places)] = column
        return self.store.columns(0)[name][:0] if found is None else found

    def _names(self, role: str) -> Array | None:
        known = self.store.names.get(role)
        return None if known is None else known[self._column(role)]

    def _keys(self, columns: BlockColumns) -> Array:
        if self.by_place:
            return document_keys(self.source, columns["rows"])
        return content_keys(secret_of(self.source, self.secret), columns["digests"], columns["copies"])

    def by_stored_block(self) -> Iterable[Array | range]:
        """The places of the documents of each stored block."""
        starts = self.store.starts
        if self.rows is None:
            return [range(first, last) for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        return places_of_each(np.searchsorted(starts, np.asarray(self.rows), side="right") - 1)

    def block_at(self, place: int) -> int:
        """The stored block of the document at this place."""
        return self.store.block_of(int(self._stored(range(place, place + 1))[0]))

    def shard(self, place: int) -> str:
        """The file in which the document at this place lies."""
        return self.store.shard(self.block_at(place) if len(self) else 0)

    def _stored(self, places: Array | range) -> Any:
        """The numbers in the store of the documents at these places."""
        if self.rows is None:
            return places
        if isinstance(places, range):
            return self.rows[places.start : places.stop]
        return np.asarray(self.rows)[places]

    # ---- other documents made of these, none of which is read --------------------------------------------------------

    def select(self, rows: Array | range) -> StoredDocuments:
        """The documents with these row numbers, in that order."""
        return replace(self, rows=self._stored(rows))

    def over(self, words: tuple[str, ...]) -> StoredDocuments:
        """The same documents in these words."""
        if self.words is not None and not set(words) <= set(self.words):
            raise whole_corpus_needed("a second list of words with words that the first one left out", self.folder)
        return replace(self, words=words)

    def renamed(self, names: tuple[str, ...]) -> StoredDocuments:
        """The same documents, each word under the name at its place, unless they are in other words already."""
        if self.words is not None:
            raise whole_corpus_needed("other names for words of a list", self.folder)
        return replace(self, names=names)

    def without_persons(self) -> StoredDocuments:
        """The same documents, each as if it were of a person of its own."""
        return replace(self, are_named=False)

    def of_party(self, name: str) -> StoredDocuments:
        """The same documents, all of one party."""
        return replace(self, party=name)

    def named_by_place(self, source: str) -> StoredDocuments:  # noqa: ARG002 - it is the same
        """The same documents under keys of their numbers in the source, as documents in memory have them."""
        return replace(self, by_place=True)

    def source_order(self) -> Array | None:
        """The order in which they were read, which persons change where there are several blocks; None: they are in it."""
        return np.argsort(self._column("rows"), kind="stable") if self.has_persons and self.stored_blocks > 1 else None

    # ---- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> HeldDocuments:
        """The documents in memory."""
        columns, counted = self._columns(), len(self.store.vocabulary)
        counts, keys = counts_of(columns, counted), self._keys(columns)
        found = (columns, counts, self.store.vocabulary, keys, self.store.names)
        held = HeldDocuments.of_columns(*found, with_persons=self.has_persons)
        held = held if self.party is None else held.of_party(self.party)
        held = held if self.names is None else held.renamed(self.names)
        if self.words is None:
            return held
        if self.names is not None:
            return held.over(self.words)
        return held.renumbered(self.words, _places(self.store.identity, self.words))

    def _columns(self) -> BlockColumns:
        """A block that is asked for as it was written is mapped; of others, the documents are copied."""
        rows = range(len(self)) if self.rows is None else self.rows
        starts = self.store.starts
        if isinstance(rows, range) and len(rows) and rows == self.store.whole_block(rows.start):
            return self.store.columns(self.store.block_of(rows.start))
        numbers = np.asarray(rows, dtype=np.int64)
        home = np.searchsorted(starts, numbers, side="right") - 1
        own = numbers - starts[home]
        few = np.bincount(home, minlength=1)[home] <= FEW
        places, pieces = [], []
        if few.any() or not len(few):
            places, pieces = [np.flatnonzero(few)], [self.store.alone(home[few], own[few])]
        crowded = np.flatnonzero(~few)
        for many in (crowded[one] for one in places_of_each(home[crowded])):
            places.append(many)
            pieces.append(chosen_documents(self.store.columns(int(home[many[0]])), own[many]))
        joined, order = joined_documents(pieces), np.concatenate(places)
        return joined if (np.diff(order) > 0).all() else chosen_documents(joined, np.argsort(order))

    # ---- in a file ---------------------------------------------------------------------------------------------------

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What a file says of them: which documents of the corpus on disk they are. These stay where they are."""
        facts = {name: getattr(self, name) for name in ("source", "party", "are_named", "by_place", "words")}
        facts |= {"folder": str(self.folder), "digest": self.store.manifest.digest, "secret": self.secret.hex()}
        return facts, {} if self.rows is None else {"rows": np.asarray(self.rows)}

    @classmethod
    def of_kept(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> StoredDocuments:
        """The documents of such a file."""
        store = opened(Path(facts["folder"]))
        if store.manifest.digest != str(facts["digest"]):
            raise damaged_shard(str(facts["folder"]), "another corpus was built there meanwhile")
        words = None if facts["words"] is None else tuple(facts["words"])
        shown = (words, facts["party"], bool(facts["are_named"]), bool(facts["by_place"]))
        return cls(store, str(facts["source"]), bytes.fromhex(facts["secret"]), arrays.get("rows"), *shown)


def whole_corpus_needed(what: str, folder: Path | None) -> Mistake:
    """More documents than a block would have to be in memory."""
    return Mistake(
        "{what} needs all documents in memory at once, and {path} is read block by block",
        hint="read the documents themselves, or a part of them that fits into memory",
        what=what,
        path=str(folder),
    )


def _unpacked(store: CorpusStore, source: str, secret: bytes, first: int, packed: Array, *shown: Any) -> StoredDocuments:
    return StoredDocuments(store, source, secret, np.flatnonzero(np.unpackbits(packed)) + first, *shown)


@lru_cache(maxsize=4)
def _places(store: tuple[str, str, tuple[int, ...]], words: tuple[str, ...]) -> Array:
    """The place of each stored word among these; -1 for one that is not there."""
    return places_of(store_at(*store).vocabulary, words)
