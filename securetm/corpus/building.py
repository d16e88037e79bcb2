"""Makes a corpus of texts that come one by one: only word ids and counts stay in memory. It opens no file.

Every raw form of a word is checked once (lower case, length, stop words); after that a word costs one dictionary look-up.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.document_names import DIGEST, content_keys, copy_numbers, id_name, secret_of, text_digest, text_name
from securetm.corpus.held_documents import HeldDocuments, merge_ends, too_many_words, unlike_parts
from securetm.corpus.records import LIMIT, NO_TEXT, NO_WORD, Dropped, Record, bad_cell, document_too_long, incomplete_column
from securetm.corpus.tokeniser import BREAK, Tokeniser
from securetm.errors import Mistake

Embed = Callable[[Sequence[str]], Array]  # from texts to embeddings, one row a text
_DROPPED, _SENTENCE, _DOCUMENT = -1, -2, -3
_FLUSH = 1 << 18  # pieces that wait before they are packed
_RAW_FORMS = 1 << 21  # of words that are remembered: new numbers and addresses never end
_BYTES_OF_WORD, _BYTES_OF_DOCUMENT = 32, 300  # in memory until they are written
_NAMED = ("label", "party", "date", "person")
_LONGEST_NAME = 256  # characters of a label, a party, a date: a longer one means that a column of texts was named by mistake
Built = tuple[HeldDocuments, str, str, int, tuple[Dropped, ...]]  # what a corpus is made of


class Lexicon(dict[str, int]):
    """From a raw form to the id of its word, or to a mark (dropped, end of sentence). Ids are given in order of appearance."""

    def __init__(self, word_of: Callable[[str], str | None], most: int = _RAW_FORMS) -> None:
        super().__init__({BREAK: _SENTENCE})
        self.words: dict[str, int] = {}
        self._word_of = word_of
        self._most = most

    def trim(self) -> None:
        """Forgets raw forms if there are too many of them; the words keep their ids."""
        if len(self) > self._most:
            self.clear()
            self[BREAK] = _SENTENCE

    def __missing__(self, piece: str) -> int:
        word = self._word_of(piece)
        number = _DROPPED if word is None else self.words.setdefault(word, len(self.words))
        self[piece] = number
        return number


class CorpusBuilder:
    """Takes documents one at a time. `source` names them in errors; `name` and `secret` give them their keys.

    With `embed`, texts that bring no embedding get theirs when the documents are taken. `raw_forms` of words are remembered.
    """

    def __init__(
        self,
        tokeniser: Tokeniser,
        *,
        name: str,
        source: str = "",
        embed: Embed | None = None,
        raw_forms: int = _RAW_FORMS,
        secret: bytes = b"",
    ) -> None:
        self._tokeniser = tokeniser
        self._embed = embed
        self._name, self._secret = name, secret
        self._source = source or name
        self.lexicon = Lexicon(tokeniser.word, raw_forms)
        self.names: dict[str, dict[str, int]] = {role: {"": 0} for role in _NAMED}  # each distinct name of a role once
        self.documents = 0  # in all
        self.dropped = Counter[tuple[str, ...]]()  # of those that were taken last, by reason, party, label and date
        self.width: int | None = None  # of each embedding that came with a text
        self.persons_known = self.ids_known = False
        self._begin()

    def _begin(self) -> None:
        self._waiting = array("i")
        self._tokens, self._ends, self._sentence_ends = array("i"), array("q"), array("q")
        self._entries = {role: array("i") for role in _NAMED}
        self._embeddings = array("f")
        self._texts, self._digests = bytearray(), bytearray()
        self._raw, self._raw_length = list[str](), 0  # the texts, kept only until they are embedded, and their characters
        self._blank = bytearray()  # which documents have no text at all

    def add(self, record: Record) -> None:
        """One more document."""
        self._check_complete(record)
        for role, known in self.names.items():
            name = getattr(record, role) or ""
            if len(name) > _LONGEST_NAME:
                where = record.source or self._source
                raise bad_cell(where, record.line, role, f"is longer than {_LONGEST_NAME} characters")
            self._entries[role].append(known.setdefault(name, len(known)))
        if record.embedding is not None:
            self._embeddings.frombytes(np.ascontiguousarray(record.embedding, dtype=np.float32).tobytes())
        elif self._embed is not None:
            self._raw.append(record.text)
            self._raw_length += len(record.text)
        self._blank.append(not record.text or record.text.isspace())
        self._texts += text_digest(record.text)
        named = record.label, record.party, record.date, record.person
        self._digests += id_name(record.id) if record.id else text_name(record.text, named, record.embedding)
        self._take(record)
        self._waiting.append(_DOCUMENT)
        self.documents += 1
        if len(self._waiting) >= _FLUSH:
            self._pack()

    def _take(self, record: Record) -> None:
        """The words of a document. Refuses one that is too long."""
        where, longest = f"{record.source or self._source}, line {record.line:,}: a document", self._tokeniser.longest
        if len(record.text) > LIMIT:
            raise document_too_long(record.source or self._source, record.line)
        before = len(self._waiting)
        self._waiting.extend(self._pieces(record.text))
        if len(self._waiting) - before > longest:
            words = sum(piece >= 0 for piece in self._waiting[before:])
            if words > longest:
                raise too_many_words(where, f"{words:,}", longest)

    @property
    def held(self) -> int:
        """The number of documents that were added since the last were taken."""
        return len(self._blank)

    @property
    def bytes_held(self) -> int:
        """How much memory these documents take until they are taken and written, more or less."""
        words = len(self._tokens) + len(self._waiting)
        return _BYTES_OF_WORD * words + _BYTES_OF_DOCUMENT * self.held + 12 * len(self._embeddings) + 4 * self._raw_length

    def taken(self, *, keep_empty: bool = False) -> dict[str, Array]:
        """The documents that were added since the last call, as columns of a block whose words and names have the numbers of
        their first appearance. Those without a word are left out and counted, or kept."""
        self._pack()
        ends, held = _integers(self._ends, np.int64), self.held
        has_words = np.diff(ends, prepend=0) > 0
        kept = np.arange(held) if keep_empty else np.flatnonzero(has_words)
        names = {role: _integers(entries, np.int32) for role, entries in self._entries.items()}
        taken = {
            "rows": self.documents - held + kept,
            "digests": _sixteens(self._digests)[kept],
            "copies": np.zeros(len(kept), np.int32),  # numbered when all are read
            "tokens": _integers(self._tokens, np.int32),
            "token_ends": ends[kept],
            "sentence_ends": merge_ends(_integers(self._sentence_ends, np.int64), ends[kept]),
            **{role: numbers[kept] for role, numbers in names.items()},
            "texts": _sixteens(self._texts)[kept],
        }
        if self.width:
            taken["embeddings"] = np.frombuffer(self._embeddings, np.float32).reshape(-1, self.width)[kept]
        elif self._embed is not None:
            taken["embeddings"] = np.asarray(self._embed([self._raw[row] for row in kept]), np.float32)
        gone = () if keep_empty else np.flatnonzero(~has_words)
        known = [(list(self.names[role]), names[role]) for role in ("party", "label", "date")]
        reasons = [(NO_TEXT if self._blank[row] else NO_WORD, *(name[of[row]] for name, of in known)) for row in gone]
        self.dropped = Counter(reasons)
        self._begin()
        return taken

    def finish(self, *, keep_empty: bool = False) -> Built:
        """The documents with a sorted vocabulary; those without a word are left out and counted, or kept."""
        taken = self.taken(keep_empty=keep_empty)
        documents = len(taken["rows"])
        if not documents:
            raise no_documents(self._source, self.documents)
        copies = copy_numbers(taken["digests"])
        if self.ids_known and copies.any():
            raise repeated_ids(self._source, int((copies > 0).sum()))
        vocabulary, place = in_alphabetical_order(self.lexicon.words)
        np.take(place, taken["tokens"], out=taken["tokens"], mode="clip")  # in place: the tokens take most of the memory
        persons = list(self.names["person"])
        used = {role: np.array(list(known), dtype=np.str_) for role, known in self.names.items() if len(known) > 1}
        with_persons = used.pop("person", None) is not None  # whose names are thrown away
        keys = content_keys(secret_of(self._name, self._secret), taken["digests"], copies)
        held = HeldDocuments.of_columns(taken, None, tuple(vocabulary), keys, used, with_persons=with_persons)
        listed = "\n".join(persons).encode("utf-8", "surrogatepass")  # equal lists of persons number them alike
        people = f"{self._name} {hashlib.blake2b(listed, digest_size=8).hexdigest()}" if with_persons else ""
        return held, self._name, people, self.documents - documents, counted_by_reason(self.dropped)

    def _pieces(self, text: str) -> Iterable[int]:
        if self._tokeniser.ngrams > 1:
            return self._numbered(self._tokeniser.sentences(text))
        self.lexicon.trim()
        return map(self.lexicon.__getitem__, self._tokeniser.pieces(text))

    def _numbered(self, sentences: Sequence[list[str]]) -> Iterable[int]:
        words = self.lexicon.words
        for sentence in sentences:
            yield from (words.setdefault(word, len(words)) for word in sentence)
            yield _SENTENCE

    def _pack(self) -> None:
        """Moves the waiting pieces into the compact arrays."""
        waiting = _integers(self._waiting, np.int32)
        kept = waiting >= 0
        passed = np.cumsum(kept, dtype=np.int64) + len(self._tokens)
        self._sentence_ends.frombytes(passed[waiting == _SENTENCE].tobytes())
        self._ends.frombytes(passed[waiting == _DOCUMENT].tobytes())
        self._tokens.frombytes(waiting[kept].tobytes())
        self._waiting = array("i")

    def _check_complete(self, record: Record) -> None:
        """Refuses a document without an id, a person or an embedding where others have one."""
        width = None if record.embedding is None else len(record.embedding)
        person, number, where = bool(record.person), bool(record.id), record.source or self._source
        if self.documents == 0:
            self.width, self.persons_known, self.ids_known = width, person, number
        known = (self.ids_known, self.persons_known, self.width is not None)
        for role, given, first in zip(("id", "person", "embedding"), (number, person, width is not None), known, strict=True):
            if given != first:
                raise incomplete_column(where, record.line, role, given=given)
        if width != self.width:
            raise bad_cell(where, record.line, "embedding", f"has {width} numbers where the first has {self.width}")


def no_documents(path: str, skipped: int) -> Mistake:
    """A source in which no document has a word."""
    return Mistake(
        "{path}: none of its documents ({skipped}) holds a word that the tokeniser keeps",
        hint="is the text column the right one (--text COLUMN)? do the tokeniser's settings fit the language (--set "
        "tokeniser.stop_words=none, --set tokeniser.min_length=2)?",
        path=path,
        skipped=skipped,
    )


def repeated_ids(path: str, repeated: int) -> Mistake:
    """Ids that do not tell documents apart."""
    return Mistake(
        "{path}: {repeated:document has|documents have} the same id as an earlier one",
        hint="an id names one document: name another column with --id, or none; then documents are named by what they say",
        path=path,
        repeated=repeated,
    )


def _sixteens(raw: bytearray) -> Array:
    return np.frombuffer(bytes(raw), np.uint8).reshape(-1, DIGEST)


def in_alphabetical_order(words: Mapping[str, int]) -> tuple[list[str], Array]:
    """The words in alphabetical order, and the place in it of each word's number."""
    vocabulary = sorted(words)
    place = np.empty(len(vocabulary), dtype=np.int32)
    place[[words[word] for word in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)
    return vocabulary, place


def counted_by_reason(dropped: Counter[tuple[str, ...]]) -> tuple[Dropped, ...]:
    """Documents that are in no corpus, by reason, party, label and date."""
    return tuple(Dropped(reason, documents, *known) for (reason, *known), documents in sorted(dropped.items()))


def documents_of_strings(
    texts: Iterable[str],
    *,
    tokeniser: Tokeniser,
    name: str = "strings",
    labels: Sequence[Any] | Array | None = None,
    parties: Sequence[Any] | Array | None = None,
    dates: Sequence[Any] | Array | None = None,
    persons: Sequence[Any] | Array | None = None,
    embeddings: Sequence[Any] | Array | None = None,
    ids: Sequence[Any] | Array | None = None,
    keep_empty: bool = False,
    embed: Embed | None = None,
) -> Built:
    """Documents from texts in memory; every column has one entry per text. Positions in errors count from 1.

    Texts without a word are left out and counted, or kept. Without a column `embeddings`, `embed` makes them from the texts.
    """
    builder = CorpusBuilder(tokeniser, name=name, embed=embed)
    named = {"label": labels, "party": parties, "date": dates, "person": persons, "embedding": embeddings, "id": ids}
    columns = {role: list(entries) for role, entries in named.items() if entries is not None}
    documents = 0
    for line, text in enumerate(texts, 1):
        documents = line
        if not isinstance(text, str):
            raise bad_cell(name, line, "text", f"is of type {type(text).__name__}, not a string")
        if short := [role for role, entries in columns.items() if len(entries) < line]:
            raise unlike_parts(f"{short[0]} entries", len(columns[short[0]]), line)
        builder.add(Record(text, line, **{role: _cell(role, entries[line - 1]) for role, entries in columns.items()}))
    if long := [role for role, entries in columns.items() if len(entries) > documents]:
        raise unlike_parts(f"{long[0]} entries", len(columns[long[0]]), documents)
    return builder.finish(keep_empty=keep_empty)


def _cell(role: str, entry: Any) -> Any:
    """A cell as a reader gives it; None and NaN, the missing values of data frames, become None."""
    if role == "embedding":
        return None if entry is None else np.asarray(entry, dtype=np.float32)
    return None if entry is None or entry != entry else str(entry)


def _integers(numbers: array[int], kind: Any) -> Array:
    return np.frombuffer(numbers, dtype=kind) if len(numbers) else np.zeros(0, dtype=kind)
