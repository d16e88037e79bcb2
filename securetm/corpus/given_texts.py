"""The language of texts that come without a tokeniser, told as a run tells it, and the tokeniser that they get."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any

from securetm.corpus.languages import ENGLISH_CODE, language_name, language_of
from securetm.corpus.tokeniser import BREAK, DROPPED, ENGLISH, NO_LIST, RECOMMENDED, Tokeniser
from securetm.data_classes import dataclass

GLANCE = 300  # texts that tell their language
_WORDS = 2_000  # of a corpus
_EVERY_WORD = Tokeniser(stop_words=NO_LIST, markup=DROPPED)


class OtherLanguage(UserWarning):
    """Documents read as another language than English."""


@dataclass(frozen=True)
class SeenLanguage:
    """The language that texts are written in."""

    code: str | None = None  # None: it cannot be told
    surely: bool = False  # whether each half of them reads as that language, so that no single document decides it

    @property
    def foreign(self) -> str:
        """Its code, where it is another one than English and its stop words are installed; else nothing."""
        return "" if self.code in (None, ENGLISH_CODE) or find_spec("wordfreq") is None else str(self.code)

    @property
    def name(self) -> str:
        """In English."""
        return language_name(self.foreign)


def language_seen(texts: Iterable[Any]) -> SeenLanguage:
    """The language of the first texts."""
    first = list(islice((text for text in texts if isinstance(text, str)), GLANCE))
    code = _read_as(first)
    return SeenLanguage(code, code is not None and all(_read_as(first[half::2]) == code for half in (0, 1)))


def language_kept(corpora: Iterable[Any]) -> SeenLanguage:
    """The language of which documents that were read before still have the function words; nothing if it is English."""
    for corpus in corpora:
        if corpus.folder is None and corpus.has_sentences:
            seen = SeenLanguage(language_of((corpus.vocabulary[number] for number in corpus.tokens[:_WORDS]), ENGLISH))
            if seen.foreign:
                return seen
    return SeenLanguage()


def tokeniser_of(texts: Iterable[Any], *, unsure: bool = False, stacklevel: int = 4) -> Tokeniser:
    """The tokeniser of a plan for these texts, with the stop words of their language, which is told to the caller.

    Where a single text may decide the language, it is not taken: under a budget that text would change the words of others.
    With `unsure` it is taken all the same.
    """
    seen = language_seen(texts)
    if not seen.foreign:
        return Tokeniser(**RECOMMENDED)
    if seen.surely or unsure:
        others = 'tokeniser=securetm.Tokeniser(stop_words="english") takes others'
        warn_of_language(f"the texts read as {seen.name}, so its stop words are taken ({others})", stacklevel)
        return Tokeniser(stop_words=seen.foreign, **RECOMMENDED)
    own = f'tokeniser=securetm.Tokeniser(stop_words="{seen.foreign}") takes those of {seen.name}'
    warn_of_language(
        f"some of the texts read as {seen.name} and some do not, so stop words of English are taken: {own}", stacklevel
    )
    return Tokeniser(**RECOMMENDED)


def warn_of_language(sentence: str, stacklevel: int) -> None:
    """Says it at the line of the caller."""
    warnings.warn(sentence, OtherLanguage, stacklevel=stacklevel)


def _read_as(texts: Sequence[str]) -> str | None:
    return language_of((piece for text in texts for piece in _EVERY_WORD.pieces(text) if piece != BREAK), ENGLISH)
