"""A language's whole list of words in the user's cache, by the hash of all that it is made of. No document is read.

Making it takes one to three seconds of each process that looks words up. It may be deleted at any time: what is missing or
damaged is made again.
"""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from securetm.corpus import stop_words, tokeniser, unspaced_scripts
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import OpenToOthers, OwnedByAnother
from securetm.private_files import check_private, private_folder, writing
from securetm.resources import user_cache

_MADE_BY = (tokeniser, unspaced_scripts, stop_words)  # with the module of the function that makes a list
_HASH = 32  # bytes before the words


def kept_list(code: str, by: Tokeniser, make: Callable[[str, Tokeniser], tuple[str, ...]]) -> tuple[str, ...]:
    """The words of the list in this language that this tokeniser makes, as they were kept, or made now and then kept."""
    name = _name(code, by, make.__module__)
    if name is None:
        return make(code, by)
    path = user_cache() / "word-lists" / f"{code}-{name}.txt"
    with suppress(OSError, OpenToOthers, OwnedByAnother, ValueError):  # then it is made again
        return _read(path)
    words = make(code, by)
    with suppress(OSError, OpenToOthers, OwnedByAnother):  # then it is made again next time
        _keep(path, words)
    return words


def _name(code: str, by: Tokeniser, module: str) -> str | None:
    """The hash of the language's list, the tokeniser's settings and code, and the version of Unicode; None where unknown."""
    import wordfreq

    settings, listed = by.settings(), wordfreq.available_languages("best").get(code)
    if settings is None or listed is None:  # a function of the user's own makes words
        return None
    found = hashlib.sha256(json.dumps([settings, unicodedata.unidata_version, sys.version_info[:2]]).encode())
    for path in (listed, *(str(one.__file__) for one in (*_MADE_BY, sys.modules[module]))):
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
