"""The language of texts that a caller gives without a tokeniser, told as a run tells it, and the tokeniser that they get."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any

from securetm.corpus.languages import ENGLISH_CODE, language_name, language_of
from securetm.corpus.tokeniser import BREAK, DROPPED, ENGLISH, NO_LIST, Tokeniser
from securetm.data_classes import dataclass
from securetm.models.given_documents import texts_in

_GLANCE = 300  # texts that tell their language, as of a file
_WORDS = 2_000  # of a corpus
_EVERY_WORD = Tokeniser(stop_words=NO_LIST, markup=DROPPED)


class OtherLanguage(UserWarning):
    """Documents read as another language than English."""


@dataclass(frozen=True)
class SeenLanguage:
    """The language that texts are written in, if it is another than English and there is a list of its stop words."""

    code: str = ""
    surely: bool = False  # whether each half of them reads as that language, so that no single document decides it

    @property
    def name(self) -> str:
        """In English."""
        return language_name(self.code)


def language_seen(texts: Iterable[Any]) -> SeenLanguage:
    first = list(islice((text for text in texts if isinstance(text, str)), _GLANCE))
    code = _read_as(first)
    return SeenLanguage(code, code != "" and all(_read_as(first[half::2]) == code for half in (0, 1)))


def language_kept(corpora: Iterable[Any]) -> SeenLanguage:
    """The language of which documents that were read before still have the function words."""
    for corpus in corpora:
        if corpus.folder is None and corpus.has_sentences:
            words = (corpus.vocabulary[number] for number in corpus.tokens[:_WORDS])
            if code := _other(language_of(words, ENGLISH)):
                return SeenLanguage(code)
    return SeenLanguage()


def tokeniser_for(given: Any, tokeniser: Tokeniser | None) -> Tokeniser | None:
    """The caller's tokeniser; or for texts the one of a plan, with the stop words of their language."""
    texts = texts_in(given) if tokeniser is None else None
    if texts is None:
        return tokeniser
    seen = language_seen(texts)
    if not seen.code:
        return Tokeniser(markup=DROPPED)
    others = 'tokeniser=securetm.Tokeniser(stop_words="english") takes others'
    warn_of_language(f"the texts read as {seen.name}, so its stop words are taken ({others})", stacklevel=4)
    return Tokeniser(stop_words=seen.code, markup=DROPPED)


def warn_of_language(sentence: str, stacklevel: int) -> None:
    """Says it at the line of the caller."""
    warnings.warn(sentence, OtherLanguage, stacklevel=stacklevel)


def _read_as(texts: Sequence[str]) -> str:
    pieces = (piece for text in texts for piece in _EVERY_WORD.pieces(text) if piece != BREAK)
    return _other(language_of(pieces, ENGLISH))


def _other(code: str | None) -> str:
    """Another language than English; nothing where its stop words are not installed."""
    return "" if code in (None, ENGLISH_CODE) or find_spec("wordfreq") is None else str(code)
