"""Words of scripts that put no space between words: Chinese, Japanese, Thai, Lao, Khmer and Burmese. It has no dictionary.

A long run of such letters is cut into overlapping runs of a fixed length, as search engines do: so every longer word is made of
runs, and found by them. A short run is a word as it stands, so that text with spaces between its words keeps them.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_SOUTH_EAST = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Burmese, Khmer
_WHOLE_HAN, _WHOLE_SOUTH_EAST = 4, 12  # characters of the longest run that is one word
SHORTEST = 2  # characters of a word in these scripts, where words of others must be longer


def cut(pieces: list[str]) -> list[str]:
    """The pieces, where those with letters of these scripts are cut into words."""
    return [word for piece in pieces for word in (_words_in(piece) if _letters().search(piece) else (piece,))]


def has_unspaced(text: str) -> bool:
    """Whether the text has a letter of these scripts."""
    return _letters().search(text) is not None


def runs_within(piece: str) -> list[str]:
    """The words that a piece gives in the midst of a longer run of such letters; the piece itself if it has none of them."""
    return _words_in(piece, whole=False) if has_unspaced(piece) else [piece]


def _words_in(piece: str, *, whole: bool = True) -> list[str]:
    """Chinese letters and hiragana in twos, a run of katakana whole, South East Asian letters in threes with their marks."""
    found: list[str] = []
    for part in _parts().finditer(piece):
        if part.lastgroup == "han":
            found += _overlapping(list(part.group()), 2, _WHOLE_HAN * whole)
        elif part.lastgroup == "south_east":
            short = whole and len(part.group()) <= _WHOLE_SOUTH_EAST
            found += _overlapping(_syllable_parts().findall(part.group()), 3, len(part.group()) * short)
        else:
            found.append(part.group())
    return found


def _overlapping(letters: list[str], several: int, whole: int) -> list[str]:
    if len(letters) <= max(whole, several):
        return ["".join(letters)]
    return ["".join(letters[first : first + several]) for first in range(len(letters) - several + 1)]


@functools.cache
def combining_marks() -> str:
    """All combining marks and joiners, as the inside of a character class."""
    marks = [c for c in range(0x300, min(sys.maxunicode, 0x1FFFF)) if unicodedata.category(chr(c)).startswith("M")]
    starts = [c for c in marks if unicodedata.category(chr(c - 1))[0] != "M"]
    ends = [c for c in marks if unicodedata.category(chr(c + 1))[0] != "M"]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True)) + "\u200c\u200d"


@functools.cache
def _letters() -> re.Pattern[str]:
    return re.compile(f"[{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTH_EAST}]")


@functools.cache
def _parts() -> re.Pattern[str]:
    every = _HAN + _HIRAGANA + _KATAKANA + _SOUTH_EAST
    kinds = f"(?P<han>[{_HAN}{_HIRAGANA}]+)|(?P<katakana>[{_KATAKANA}]+)|(?P<south_east>[{_SOUTH_EAST}]+)"
    return re.compile(f"{kinds}|(?P<other>[^{every}]+)")


@functools.cache
def _syllable_parts() -> re.Pattern[str]:
    """A letter with the marks above, below and behind it."""
    return re.compile(f".[{combining_marks()}]*")
