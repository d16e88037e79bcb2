"""Questions about the words of the corpus, and the list of words that follows from their answers.

What leaves a party is a sum of one row per document. Only `WordList` needs each party's own answer, and so shows its words.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Documents, Domain, Memory, Needs, Rows, Terms, Unit
from securetm.data_classes import dataclass
from securetm.errors import BadSetting, Failed, Misuse, Refused
from securetm.extras import sparse

MOST_WORDS = 1_000_000  # of one party
MOST_PAIRED = 10_000  # words whose pairs are asked for: 50 million numbers
LONGEST_WORD = 100  # characters


class BadWordList(Refused):
    """the list of words from {party} {problem}"""

    party: str
    problem: str
    hint = "the party runs another version, or is not honest; leave it out or correct its software"


class EmptyVocabulary(Misuse):
    """none of {words:word|words} is in enough and not too many documents (at least {min_df}, at most {max_df})"""

    words: int
    min_df: str
    max_df: str
    hint = (
        "take fewer documents for enough or more for too many: --set vocabulary.min_documents=1, --set vocabulary.max_share=1 "
        "(min_df and max_df in Python)"
    )


def present(counts: Any) -> Any:
    """The words that each document holds, as a sparse matrix of 0 and 1."""
    whole = sparse.csr_array(counts, copy=True)
    whole.eliminate_zeros()
    return sparse.csr_array((np.ones(whole.nnz, np.int64), whole.indices, whole.indptr), whole.shape)


@dataclass(frozen=True)
class DocumentFrequencies:
    """How many documents there are, and how many hold each word. A document's own row is (1, which words it holds)."""

    vocabulary_size: int

    @property
    def terms(self) -> Terms:
        """A row of zeros and ones, so its bounds follow from its length."""
        layout = (Block("documents", (1,)), Block("frequencies", (self.vocabulary_size,)))
        return presence_terms(layout, data_only=True)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        one = sparse.csr_array(np.ones((len(documents), 1), np.int64))
        # where persons are protected, the sum joins the rows of each person
        clipped_sum.add(sparse.hstack([one, present(documents.counts)], format="csr"), np.arange(len(documents)))


class NamesWords(ABC):
    """A question to which each party has one row, made of the words that a mechanism lets it name."""

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        counts = clipped_sum.named(*self.own_words(documents))
        clipped_sum.add(self.row(documents.vocabulary, counts, len(documents)), np.zeros(1, dtype=np.int64))

    def own_words(self, documents: Documents) -> tuple[Rows, Array, Array]:
        """Which words each document holds, and each word's own number below 2^62, which depends on the word alone."""
        words = (word.encode("utf-8", "surrogatepass") for word in documents.vocabulary)
        hashed = b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in words)
        numbers = (np.frombuffer(hashed, dtype="<u8") >> np.uint64(2)).astype(np.int64)
        return present(documents.counts), np.arange(len(documents)), numbers

    @abstractmethod
    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        """The row of a party with so many documents, which hold these words so often."""


@dataclass(frozen=True)
class WordList(NamesWords):
    """The words of each party, as gFedNTM's union of vocabularies needs them: UTF-8 bytes, a newline between two words.

    A party with more words than fit leaves out those that fewest of its documents hold. The order is alphabetical, so it does
    not depend on frequencies; but the coordinator learns which party uses which word.
    """

    max_bytes: int

    @property
    def terms(self) -> Terms:
        """One signed byte per coordinate. A vector is as long as the party's list, up to the longest that is accepted."""
        return Terms(
            (Block("words", (self.max_bytes,)),),
            needs=Needs.EACH,
            ragged=True,
            data_only=True,
            names_words=True,
            domain=Domain.INTEGER,
            bits=8,
            unit=Unit.PARTY,
        )

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        held = [(-int(n), word) for word, n in zip(words, counts, strict=True) if n and sendable(word)]
        frequent = [word for _, word in sorted(held)[:MOST_WORDS]]
        ends = np.cumsum([len(word.encode()) + 1 for word in frequent]) - 1  # with a newline between two words
        chosen = sorted(frequent[: int(np.searchsorted(ends, self.max_bytes, side="right"))])
        return np.frombuffer("\n".join(chosen).encode(), dtype=np.int8)


def merge_words(answer: Answer) -> tuple[str, ...]:
    """The union of the parties' words, alphabetically. Refuses a bad list, and names its party."""
    union: set[str] = set()
    for party, blocks in sorted(answer.each.items()):
        values = blocks["words"]
        if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer) or np.any((values < -128) | (values > 255)):
            raise BadWordList(party, "is not a list of bytes")
        if (lines := int(np.count_nonzero(values == ord("\n"))) + 1) > MOST_WORDS:  # before they are decoded
            raise BadWordList(party, f"has {lines} words where at most {MOST_WORDS} are accepted")
        try:
            words = values.astype(np.uint8).tobytes().decode("utf-8").split("\n") if len(values) else []
        except UnicodeDecodeError as error:
            raise BadWordList(party, f"is not UTF-8 at byte {error.start}") from None
        for number, word in enumerate(words, start=1):
            if not sendable(word):
                raise BadWordList(party, f"has a word, number {number}, that is empty, too long or not printable")
        union.update(words)
    return tuple(sorted(union))


def choose_vocabulary(
    words: Sequence[str], documents: int, frequencies: Array, max_words: int, min_df: float = 1, max_df: float = 1.0
) -> tuple[str, ...]:
    """The words kept, alphabetically: those in enough but not too many documents, of these the most frequent.

    As in scikit-learn a whole number counts documents and a fraction is a share of them: max_df = 1.0 keeps all, and a word
    in exactly the share max_df of the documents is kept.
    """
    for name, df in (("min_df", min_df), ("max_df", max_df)):
        if df < 0 or (isinstance(df, float) and df > 1):
            raise BadSetting("vocabulary", name, str(df), "must be a number of documents or a share between 0.0 and 1.0")
    of_least, of_most = (max(documents, 1) if isinstance(df, float) else 1 for df in (min_df, max_df))  # 29 of 100 are .29
    found = zip(words, frequencies.tolist(), strict=True)
    kept = sorted((-int(n), word) for word, n in found if n >= 1 and n / of_least >= min_df and n / of_most <= max_df)
    if not kept:
        raise EmptyVocabulary(len(words), str(min_df), str(max_df))
    return tuple(sorted(word for _, word in kept[:max_words]))


def sendable(word: str) -> bool:
    """Whether a word may be sent: it has no control or formatting characters, since vocabularies are printed."""
    return 0 < len(word) <= LONGEST_WORD and word.isprintable() and word == word.strip()


def presence_terms(layout: tuple[Block, ...], *, data_only: bool, bits: int = 64) -> Terms:
    """The terms of rows of zeros and ones: their length bounds a document's row."""
    size = float(sum(block.shape[0] for block in layout))
    return Terms(layout, data_only=data_only, domain=Domain.INTEGER, bits=bits, l1=size, l2=size**0.5, linf=1.0)


def total_of(answer: Answer) -> Mapping[str, Array]:
    """The sum of an answer, where this role opened one."""
    if answer.total is None:
        raise Failed("this question was not answered with a sum", hint="only the role that opens the sum can read it")
    return answer.total
