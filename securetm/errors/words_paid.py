"""What keeps noise on single words from being taken for more than it is."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse, SecuretmError, Unsound


@dataclass(eq=False)
class NotNoisedByWord(Unsound):
    """the budget is one for each word occurrence, and this question's answer has no noise for that: its rows are per {unit}"""

    unit: str
    hint = 'put laplace_counts before everything that reads documents, or give the profile a budget without unit = "word"'


@dataclass(eq=False)
class WordNoiseOnly(Unsound):
    """noise on single word occurrences hides no whole {unit}, so it pays nothing of a budget for each {unit}"""

    unit: str
    hint = 'say unit = "word" in [budget], or bound each {unit}\'s row and add noise for that bound instead'


class DrawnUnpaid(SecuretmError):
    """noise was about to be drawn that nothing had been charged for"""

    hint = "a mechanism that draws once must remember what it drew, for the documents that reach it"


_MORE = (
    "name a public list of words, which costs nothing (--vocabulary FILE), bring together parties with more documents, or let "
    "words cost more: --set privacy.words= with a number below the profile's"
)


@dataclass(eq=False)
class NoWordCanBeFound(Misuse):
    """no word can be found: no party has more than {most:document|documents}, and behind its noise a word needs {need}"""

    most: int
    need: int  # documents of one party
    hint = _MORE


@dataclass(eq=False)
class TooFewWordsFound(SecuretmError):
    """the selection of words found {found:word|words}: behind its noise a word needs about {need} documents of one party"""

    found: int
    need: int
    hint = _MORE + "; what the selection cost is spent"
