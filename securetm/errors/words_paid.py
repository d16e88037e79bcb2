"""What keeps noise on single words from being taken for more than it is."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import SecuretmError, Unsound


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
