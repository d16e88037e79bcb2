"""The language of texts that come without a tokeniser, told as a run tells it, and the tokeniser that they get."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

from securetm.corpus.languages import ENGLISH_CODE, language_name, language_of
from securetm.corpus.tokeniser import BREAK, ENGLISH, NO_LIST, RECOMMENDED, Tokeniser
from securetm.data_classes import dataclass

GLANCE = 300  # texts that tell their language
_SEVERAL = 6  # so many tell it surely
_WORDS = 2_000  # that tell a language
_EVERY_WORD = Tokeniser(stop_words=NO_LIST, **RECOMMENDED)


class OtherLanguage(UserWarning):
    """Documents read as another language than English."""


@dataclass(frozen=True)
class SeenLanguage:
    """The language that texts are written in."""

    code: str | None = None  # None: it cannot be told
    surely: bool = False  # whether each third of them reads as that language, in which a text has a small share

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
    enough = code is not None and len(first) >= _SEVERAL
    return SeenLanguage(code, enough and all(_read_as(first[third::3]) == code for third in range(3)))


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

    Where only some texts are in that language, it is not taken. Under a budget a language that is taken counts as public: no
    rule could name one by the texts that one text more could not tip. With `unsure` it is taken all the same.
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
        f"some of the texts read as {seen.name}, too few or not all, so stop words of English are taken: {own}", stacklevel
    )
    return Tokeniser(**RECOMMENDED)


def warn_of_language(sentence: str, stacklevel: int) -> None:
    """Says it at the line of the caller."""
    warnings.warn(sentence, OtherLanguage, stacklevel=stacklevel)


def _read_as(texts: Sequence[str]) -> str | None:
    """By as many words of each text, so that none outweighs the others."""
    most = -(-_WORDS // max(len(texts), 1))
    each = (islice((piece for piece in _EVERY_WORD.pieces(text) if piece != BREAK), most) for text in texts)
    return language_of(chain.from_iterable(each), ENGLISH)
