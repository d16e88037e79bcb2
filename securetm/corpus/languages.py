"""Languages of which there is a public list of words: their names, their function words, and which one texts are written in.

The frequencies are those of the package `wordfreq`. Nothing here keeps or sends what it read.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import islice
from types import MappingProxyType

_CODES = """
arabic=ar bengali=bn bosnian=sh bulgarian=bg catalan=ca chinese=zh croatian=sh czech=cs danish=da dutch=nl english=en
filipino=fil finnish=fi french=fr german=de greek=el hebrew=he hindi=hi hungarian=hu icelandic=is indonesian=id
italian=it japanese=ja korean=ko latvian=lv lithuanian=lt macedonian=mk malay=ms norwegian=nb persian=fa polish=pl
portuguese=pt romanian=ro russian=ru serbian=sh slovak=sk slovenian=sl spanish=es swedish=sv tamil=ta turkish=tr
ukrainian=uk urdu=ur vietnamese=vi
"""
LANGUAGES: Mapping[str, str] = MappingProxyType(dict(pair.split("=") for pair in _CODES.split()))
ENGLISH_CODE = "en"
_FREQUENT = 5e-4  # of all words of general texts: a word so frequent is no subject's
_FEWEST, _READ = 10, 2_000  # words of texts that tell their language
_LEAST = 0.12  # of all words that must be a language's function words; plain keywords of any language have fewer
_SURELY = 0.35  # where so many are English, no other language has to be compared
_DIFFERENT = 3  # function words of another language than English: one that is frequent may be a subject's in this one
_CLEARER = 1.25  # than English, where texts are said to be of another language
_BY_SCRIPT = (  # languages that write without spaces, or whose words grow endings: letters tell more than words
    ("ja", "[\u3041-\u30ff]"),
    ("ko", "[\uac00-\ud7a3]"),
    ("zh", "[\u4e00-\u9fff]"),
)


def language_code(name: str) -> str | None:
    """Returns the code of the language with this English name or this code; None if there is no list of it."""
    lower = name.lower()
    return LANGUAGES.get(lower, lower if lower in LANGUAGES.values() else None)


def language_name(code: str) -> str:
    """The English name of the language with this code; of several that have it, all."""
    return " or ".join(name.capitalize() for name, known in LANGUAGES.items() if known == code)


@functools.cache
def function_words(code: str) -> frozenset[str]:
    """The words of a language that stand so often in its general texts that they tell no subject."""
    import wordfreq

    found = set[str]()
    for centibels, words in enumerate(wordfreq.get_frequency_list(code, wordlist="small")):
        if 10 ** (-centibels / 100) < _FREQUENT:
            break
        found.update(unicodedata.normalize("NFKC", word).replace("’", "'") for word in words if not word[0].isnumeric())
    return frozenset(found)


def language_of(words: Iterable[str], english: frozenset[str] = frozenset()) -> str | None:
    """The code of the language of which these raw words have most function words; None where no language has enough.

    English is found unless another language fits clearly better, and first by words that are known to be `english`. Where no
    lists of languages are installed, other languages are not told apart.
    """
    read = [unicodedata.normalize("NFKC", word).replace("’", "'").lower() for word in islice(words, _READ)]
    if len(read) < _FEWEST:
        return None
    letters = "".join(read)
    for code, script in _BY_SCRIPT:
        if 4 * len(re.findall(script, letters)) > len(letters):
            return code

    def share(code: str) -> float:
        known = function_words(code)
        return sum(word in known for word in read) / max(len(read), 1)

    if sum(word in english for word in read) >= _SURELY * max(len(read), 1):
        return ENGLISH_CODE
    if find_spec("wordfreq") is None:
        return None
    if share(ENGLISH_CODE) >= _SURELY:
        return ENGLISH_CODE
    shares = {code: share(code) for code in sorted(set(LANGUAGES.values()))}
    best = max(shares, key=lambda code: (shares[code], code))
    few = len(function_words(best).intersection(read)) < _DIFFERENT
    if few or shares[best] < max(_LEAST, _CLEARER * shares[ENGLISH_CODE] * (best != ENGLISH_CODE)):
        return ENGLISH_CODE if shares[ENGLISH_CODE] >= _LEAST else None
    return best
