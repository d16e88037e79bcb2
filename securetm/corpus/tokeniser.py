"""Turns a text into sentences of words: for any script, and the same at every party. It counts nothing and reads no corpus.

`prune` chooses a vocabulary by counts; under differential privacy that choice must be paid for or public.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus_errors import WrongEncoding
from securetm.corpus.length_limits import LONGEST, check_longest
from securetm.corpus.stop_words import ENGLISH
from securetm.corpus.unspaced_scripts import SHORTEST, combining_marks, cut, has_unspaced
from securetm.errors import BadSetting, NoSuchPath

Tokenised = Sequence[str] | Sequence[Sequence[str]]  # words, or sentences of words
BREAK = ""  # the piece, and the word, that ends a sentence

# A full stop ends a sentence before white space, but not after a single letter (U.S., e.g., J. Smith) or a title. The first two
# lookarounds keep the search linear: a run of stops is tried at its first character only.
_STOPS = ".!?…。！？｡।"
_SENTENCE_END = (
    rf"(?=[{_STOPS}\n])(?:(?<![{_STOPS}])(?:"
    r"(?:[!?…。！？｡।]++|(?<![^\W\d_])\.++|(?<=[^\W_]{2})(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bvs)(?<!\bcf)\.++)"
    rf"[{_STOPS}]*+[\"'”’»)\]]*+(?=\s|\Z)|[。！？｡।]++)|\n[^\S\n]*+\n)"
)


@dataclass(frozen=True)
class Tokeniser:
    """How texts become words. Two parties with equal tokenisers turn equal texts into equal words.

    `stop_words` is "english", "none", a tuple of words, or the path of a file with one word a line. `ngrams = 2` adds pairs of
    neighbouring kept words, joined by "_", within a sentence. Scripts without spaces between words are cut by
    `unspaced_scripts.py`; their words may have two characters. `pattern` replaces the rule that finds words. `words` replaces
    everything: your own function from a text to a list of words, or to a list of sentences of words, which stay as they are.
    """

    lower: bool = True
    stop_words: Literal["english", "none"] | tuple[str, ...] | Path = "english"
    min_length: int = 3
    max_length: int = 40
    numbers: bool = False  # keep words that begin with a digit
    ngrams: int = 1
    pattern: str | None = None
    longest: int = LONGEST  # words of the longest document; a longer one is refused when it is read
    words: Callable[[str], Tokenised] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.ngrams <= 5:
            raise BadSetting("Tokeniser", "ngrams", str(self.ngrams), "must lie between 1 and 5")
        if not 1 <= self.min_length <= self.max_length:
            raise BadSetting("Tokeniser", "min_length", str(self.min_length), f"must lie between 1 and {self.max_length}")
        if isinstance(self.stop_words, str) and self.stop_words not in ("english", "none"):
            raise BadSetting("Tokeniser", "stop_words", repr(self.stop_words), 'must be "english", "none", a tuple or a Path')
        check_longest("Tokeniser", self.longest)
        if self.pattern is not None:
            _compiled(self.pattern)

    def settings(self) -> dict[str, Any] | None:
        """These settings ready for JSON, words of a file as words; None where a function of the user's own finds the words."""
        if self.words is not None:
            return None
        found = {setting.name: getattr(self, setting.name) for setting in fields(self) if setting.name != "words"}
        return found if isinstance(self.stop_words, str) else {**found, "stop_words": sorted(self._stopped)}

    @classmethod
    def of_settings(cls, found: Mapping[str, Any]) -> Self:
        """The tokeniser of such settings."""
        stop_words = found["stop_words"]
        return cls(**{**found, "stop_words": stop_words if isinstance(stop_words, str) else tuple(map(str, stop_words))})

    def sentences(self, text: str) -> list[list[str]]:
        """The words of a text, sentence by sentence; sentences without a kept word are left out."""
        sentences: list[list[str]] = [[]]
        for piece in self.pieces(text):
            word = self.word(piece)
            if word == BREAK:
                sentences.append([])
            elif word is not None:
                sentences[-1].append(word)
        return [with_ngrams(sentence, self.ngrams) for sentence in sentences if sentence]

    def pieces(self, text: str) -> list[str]:
        """The raw words of a text with a BREAK after each sentence. `word` normalises or drops each."""
        if self.words is not None:
            parts = [[item] if isinstance(item, str) else [*item, BREAK] for item in self.words(text)]
            return [word for part in parts for word in part]
        if self.pattern is None:
            if text.isascii():
                return _ascii_pattern().findall(text)
            found: list[str] = _own_pattern().findall(text)
            return cut(found) if has_unspaced(text) else found
        find = _compiled(self.pattern).findall
        return [piece for sentence in _sentence_end().split(text) for piece in (*find(sentence), BREAK)]

    def word(self, piece: str) -> str | None:
        """The word that a raw word is counted as: None if it is dropped, BREAK at the end of a sentence."""
        if piece == BREAK or self.words is not None:
            return piece
        word = unicodedata.normalize("NFKC", piece).replace("’", "'")
        word = word.lower() if self.lower else word
        if word.lower() in self._stopped:
            return None
        word = word.removesuffix("'s").removesuffix("'S")
        return word if self._is_kept(word) else None

    def _is_kept(self, word: str) -> bool:
        unspaced = has_unspaced(word[:1])
        least = min(self.min_length, SHORTEST) if unspaced else self.min_length
        if not least <= len(word) <= self.max_length or word.lower() in self._stopped:
            return False
        return self.pattern is not None or self.numbers or unspaced or not word[0].isnumeric()

    @functools.cached_property
    def _stopped(self) -> frozenset[str]:
        if self.stop_words == "english":
            return ENGLISH
        if self.stop_words == "none":
            return frozenset()
        listed = _words_in(self.stop_words) if isinstance(self.stop_words, Path) else self.stop_words
        return frozenset(unicodedata.normalize("NFKC", word).replace("’", "'").lower() for word in listed)


def with_ngrams(words: list[str], longest: int) -> list[str]:
    """The words, each followed by the runs of two, three, ... words that end in it."""
    if longest == 1:
        return words
    runs = range(1, longest + 1)
    return ["_".join(words[end - n : end]) for end in range(1, len(words) + 1) for n in runs if n <= end]


def prune(corpus: Any, min_df: float = 1, max_df: float = 1.0, max_words: int | None = None) -> tuple[str, ...]:
    """The words that occur in enough and not too many documents, at most `max_words` of them, in alphabetical order.

    Whole numbers count documents, fractions (1.0 too) are shares of all documents. The most frequent words (ties: by the
    alphabet) stay. The result depends on the documents: under differential privacy it is not free.
    """
    frequencies: Array = corpus.document_frequencies()
    low, high = _documents(min_df, len(corpus), "min_df"), _documents(max_df, len(corpus), "max_df")
    words = np.asarray(corpus.vocabulary, dtype=object)
    fit = np.flatnonzero((frequencies >= max(low, 1)) & (frequencies <= high))
    if max_words is not None and len(fit) > max_words:
        ranked = sorted(fit, key=lambda i: (-frequencies[i], words[i]))
        fit = np.asarray(ranked[:max_words], dtype=np.int64)
    return tuple(sorted(words[fit]))


def _documents(limit: float, documents: int, name: str) -> float:
    if isinstance(limit, int):
        if limit < 0:
            raise BadSetting("prune", name, str(limit), "must not be negative")
        return limit
    if not 0.0 <= limit <= 1.0:
        raise BadSetting("prune", name, str(limit), "must be a whole number of documents or a share between 0.0 and 1.0")
    return limit * documents


def _words_in(path: Path) -> list[str]:
    if not path.is_file():
        raise NoSuchPath(str(path))
    try:
        return path.read_text("utf-8-sig").split()
    except UnicodeDecodeError as fault:
        raise WrongEncoding(str(path), fault.object.count(b"\n", 0, fault.start) + 1) from fault


@functools.cache
def _own_pattern() -> re.Pattern[str]:
    """A word is a run of letters and digits, with the marks that belong to them and with apostrophes inside.

    Python's \\w leaves out combining marks, without which words of India's scripts and many others would be cut.
    """
    word = rf"[^\W_]+(?:[{combining_marks()}]+[^\W_]*)*(?:['’][^\W\d_]+)*"
    return re.compile(rf"({word})|(?:{_SENTENCE_END})")


@functools.cache
def _ascii_pattern() -> re.Pattern[str]:
    """The same rule for texts in ASCII: it finds the same words three times faster."""
    return re.compile(rf"([A-Za-z0-9]+(?:'[A-Za-z]+)*)|(?:{_SENTENCE_END})")


@functools.cache
def _sentence_end() -> re.Pattern[str]:
    return re.compile(_SENTENCE_END)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as fault:
        raise BadSetting("Tokeniser", "pattern", repr(pattern), f"is not a regular expression: {fault}") from fault
    if compiled.groups > 1:
        raise BadSetting("Tokeniser", "pattern", repr(pattern), "has more than one group; use (?:...) for the others")
    return compiled
