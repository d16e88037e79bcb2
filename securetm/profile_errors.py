"""Profiles and plans whose parts are not sound together. It checks nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors import Unsound


@dataclass(eq=False)
class VocabularyNotAllowed(Unsound):
    """a vocabulary from {source!r} is not sound under profile {profile!r}"""

    source: str
    profile: str
    allowed: tuple[str, ...]
    hint = "allowed there: {allowed}"


class NotNoised(Unsound):
    """this question would be answered exactly, so that no privacy budget could cover it"""

    hint = "put a mechanism with noise behind the clip, or ask this question under a profile without a budget"


class WordsNotSelected(Unsound):
    """a vocabulary made of the parties' words tells which words occur, and makes every epsilon false"""

    hint = "use a public list of words (--vocabulary FILE), or a profile with word_selection"


class PublicBatches(Unsound):
    """documents are taken in an order that the coordinator knows, which amplifies nothing and is not what the budget assumes"""

    hint = 'use kind = "poisson" in place of "shuffled_batches" in the profile'


class NoiseByParties(Unsound):
    """noise is to be added by whoever opens the total, and here the parties open it: each of them would see it without"""

    hint = 'add the noise at the parties: kind = "gaussian" or "noise_shares"'


class SharesInTheClear(Unsound):
    """each party adds a share of the noise only, and here a party's answer is seen by itself, or is if others help to see it"""

    hint = 'add the shares under masked sums, or let each party add all the noise: kind = "gaussian"'


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
