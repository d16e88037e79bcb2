"""Errors of figures that cannot be computed from what was given. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, SecuretmError


class TooFewLabels(SecuretmError):
    """classification needs two labels with two documents each, and finds {found} of them in {documents:document|documents}"""

    documents: int
    found: int
    hint = "name the column of the label: --label COLUMN (in Python label=)"


class BadTopics(Misuse):
    """{path} holds no topics: {problem}"""

    path: str
    problem: str
    hint = (
        "write JSON: a list of topics, each a list of words, heaviest first, or an object of words and weights such as "
        '{{"rain": 0.2, "storm": 0.1}}; or a .csv with the columns topic, word and weight'
    )
