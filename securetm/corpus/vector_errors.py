"""Errors of word vectors: files that hold none, packages that are not there, other vectors than those agreed on."""

from __future__ import annotations

from securetm.errors import Misuse


class BadVectors(Misuse):
    """{where}: {problem}"""

    where: str
    problem: str
    hint = "write a word and its numbers on each line, with one blank between them; or a .npy file with NAME.txt beside it"


class NotInstalled(Misuse):
    """the vectors {name} are not installed"""

    name: str
    hint = "install them: pip install 'securetm[{name}]'; or name a file of vectors"


class OtherVectors(Misuse):
    """the word vectors {name!r} here have the digest {found}, and the plan says {agreed}"""

    name: str
    found: str
    agreed: str
    hint = "get the version that the others have: all roles must begin at the same topics"


class VectorsKnowNoWord(Misuse):
    """the word vectors {name!r} know none of the {words:word|words}, so there is no public topic to begin at"""

    name: str
    words: int
    hint = "name vectors of the documents' language, with words in small letters; or begin without any: --start plain"
