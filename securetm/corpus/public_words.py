"""Public lists of words: the most frequent words of a language, as the tokeniser would make them. No document is read.

The frequencies are those of the package `wordfreq`, counted in subtitles, news, encyclopedias, books and web pages up to 2021.
A list of general language fits documents of a narrow subject badly. `expected` says what to expect, from public numbers alone.

Making a language's whole list takes one to three seconds, so it is kept in the user's cache, by the hash of all that it is made
of. It may be deleted at any time: what is missing or damaged is made again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from securetm.corpus import tokeniser as words_of_texts
from securetm.corpus.corpus import Corpus
from securetm.corpus.languages import LANGUAGES
from securetm.corpus.tokeniser import BREAK, Tokeniser, prune, runs_within
from securetm.data_classes import dataclass
from securetm.errors import OpenToOthers, OwnedByAnother
from securetm.private_files import check_private, private_folder, writing
from securetm.resources import user_cache

_HASH = 32  # bytes before the words


def kept_list(code: str, by: Tokeniser, make: Callable[[str, Tokeniser], tuple[str, ...]]) -> tuple[str, ...]:
    """The words of the list in this language that this tokeniser makes, as they were kept, or made now and then kept."""
    name = _list_name(code, by, make.__module__)
    if name is None:
        return make(code, by)
    path = user_cache() / "word-lists" / f"{code}-{name}.txt"
    with suppress(OSError, OpenToOthers, OwnedByAnother, ValueError):  # then it is made again
        return _read(path)
    words = make(code, by)
    with suppress(OSError, OpenToOthers, OwnedByAnother):  # then it is made again next time
        _keep(path, words)
    return words


def _list_name(code: str, by: Tokeniser, module: str) -> str | None:
    """The hash of the language's list, the tokeniser's settings and code, and the version of Unicode; None where unknown."""
    import wordfreq

    settings, listed = by.settings(), wordfreq.available_languages("best").get(code)
    if settings is None or listed is None:  # a function of the user's own makes words
        return None
    found = hashlib.sha256(json.dumps([settings, unicodedata.unidata_version, sys.version_info[:2]]).encode())
    for path in (listed, str(words_of_texts.__file__), str(sys.modules[module].__file__)):
        found.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return found.hexdigest()[:32]


def _read(path: Path) -> tuple[str, ...]:
    """The words of a whole file of this user alone; a ValueError of any other."""
    check_private(path)
    content = path.read_bytes()
    if hashlib.sha256(content[_HASH:]).digest() != content[:_HASH]:
        raise ValueError(path)
    return tuple(content[_HASH:].decode().split("\n"))


def _keep(path: Path, words: tuple[str, ...]) -> None:
    private_folder(path.parent)
    content = "\n".join(words).encode()
    with writing(path) as to:
        to.write(hashlib.sha256(content).digest() + content)


WHOLE_LIST = 10**6  # words, more than any language's list has
READ = 60_000  # words of a language's list that are read; the next one is once in four million words of English
USUAL_LENGTH = 100.0  # words of a document, where nothing public says how long documents are


def frequent_words(code: str, most: int, tokeniser: Tokeniser, max_share: float = 1.0) -> tuple[str, ...]:
    """Returns the most frequent words of a language that this tokeniser makes, alphabetically; fewer where it has fewer.

    Words that more than `max_share` of documents of a usual length would have are left out: they say little about any.
    """
    shares = _shares(code, tokeniser, max(READ, 3 * most))
    fit = (word for word, share in shares.items() if -np.expm1(USUAL_LENGTH * np.log1p(-share)) <= max_share)
    return tuple(sorted(islice(fit, most)))


@functools.lru_cache(maxsize=8)
def ranked_words(language: str, tokeniser: Tokeniser) -> tuple[str, ...]:
    """Returns all words of a language's list that this tokeniser makes, the most frequent one first."""
    return kept_list(LANGUAGES.get(language, language), tokeniser, _ranked)


def _ranked(code: str, tokeniser: Tokeniser) -> tuple[str, ...]:
    return tuple(_shares(code, tokeniser, WHOLE_LIST))


def public_shares(words: Sequence[str], code: str, tokeniser: Tokeniser) -> NDArray[np.float64]:
    """Returns the share that each of these words has of all words in general texts of a language; 0 for an unknown one.

    The shares are of all words that the language's list holds, stop words too, so they add up to less than 1.
    """
    known = _shares(code, tokeniser, READ)
    return np.array([known.get(word, 0.0) for word in words], dtype=np.float64)


@dataclass(frozen=True)
class ExpectedWords:
    """What can be expected of a list in so many documents of general language, each of so many words."""

    documents: int
    length: float  # words of a document, stop words too
    listed: int
    occurring: float  # words of the list that are in one document at least
    frequent: float  # in `least` documents at least
    least: int
    reached: float  # share of the documents that have a word of the list


def expected(shares: NDArray[np.float64], documents: int, length: float, least: int) -> ExpectedWords:
    """Returns what a list with these shares can be expected to find, if documents draw their words by these shares alone.

    Documents about a subject repeat its words and lack others, so real documents have fewer of the list.
    """
    from scipy.stats import binom

    within = -np.expm1(length * np.log1p(-np.minimum(shares, 0.999)))  # chance that one document has the word
    occurring = float(-np.expm1(documents * np.log1p(-np.minimum(within, 1 - 1e-12))).sum())
    frequent = float(binom.sf(least - 1, documents, within).sum())
    reached = float(-np.expm1(length * np.log1p(-min(float(shares.sum()), 0.999))))
    return ExpectedWords(documents, length, len(shares), occurring, frequent, least, reached)


@functools.lru_cache(maxsize=8)
def _shares(code: str, tokeniser: Tokeniser, most: int) -> Mapping[str, float]:
    """The share of each word that this tokeniser makes of so many of the language's list, the most frequent word first."""
    import wordfreq

    listed = enumerate(wordfreq.get_frequency_list(code))
    entries = ((raw, centibels) for centibels, group in listed for raw in group)
    found: dict[str, float] = defaultdict(float)
    for raw, centibels in islice(entries, most):
        share = float(f"{10 ** (-centibels / 100):.6g}")  # the same on every processor
        for word in _made_of(raw, tokeniser):
            found[word] += share
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))))


def _made_of(raw: str, tokeniser: Tokeniser) -> list[str]:
    """The words that a tokeniser makes of a word inside of a text; of scripts without spaces, its overlapping parts.

    The list writes digits as zeros, so what has two of them in a row stands for many numbers and is no word.
    """
    if "00" in raw:
        return []
    whole = raw.isascii() and raw.isalpha() and tokeniser.pattern is None and tokeniser.words is None
    pieces = [raw] if whole else tokeniser.pieces(raw)
    parts = [part for piece in pieces if piece != BREAK for part in runs_within(piece)]
    words = (tokeniser.word(part) for part in parts)
    return [word for word in words if word is not None and word != BREAK]


# ---- a list from a public corpus, which shows that corpus: never from documents of a party ------------------------------

JOINED = "_"  # between two words of a phrase, as the tokeniser's pairs have it
_LEAST_NPMI = 0.25  # of two neighbours: from here on they occur together far more often than chance


def words_and_phrases(corpus: Corpus, words: int, phrases: int, max_share: float, least: int) -> tuple[str, ...]:
    """The most frequent words and phrases of a corpus that was read in words and pairs of neighbours, alphabetically.

    Left out is what is in more than `max_share` of the documents, or in fewer than `least` of them.
    """
    fit = prune(corpus, min_df=least, max_df=max_share)
    found = dict(zip(corpus.vocabulary, corpus.document_frequencies().tolist(), strict=True))
    single = [word for word in fit if not _is_pair(word, found)]
    pairs = [word for word in fit if _is_pair(word, found) and _npmi(word, found, len(corpus)) >= _LEAST_NPMI]

    def most(chosen: list[str], many: int) -> list[str]:
        return sorted(chosen, key=lambda word: (-found[word], word))[:many]

    return tuple(sorted({*most(single, words), *most(pairs, phrases)}))


def _is_pair(word: str, found: dict[str, int]) -> bool:
    first, joined, second = word.partition(JOINED)
    return bool(joined) and first in found and second in found


def _npmi(pair: str, found: dict[str, int], documents: int) -> float:
    """How much more often two words are neighbours in a document than they would be in one together by chance, from -1 to 1."""
    first, _, second = pair.partition(JOINED)
    together = found[pair] / documents
    if together >= 1:
        return 1.0
    return float(np.log(together * documents * documents / (found[first] * found[second])) / -np.log(together))
