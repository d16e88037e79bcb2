"""Profiles and plans whose parts are not sound together. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, Unsound


class NotNoised(Unsound):
    """this question would be answered exactly, which no privacy budget covers"""

    hint = "put a mechanism with noise behind the clip, or ask this question under a profile without a budget"


class WordsNotSelected(Unsound):
    """a vocabulary made of the parties' words shows which words occur, which no epsilon covers"""

    hint = "use a public list of words (--vocabulary FILE), or a profile with word_selection"


class PublicBatches(Unsound):
    """the coordinator knows the order of the documents, so batches give no amplification, and the budget counts on it"""

    hint = 'use kind = "poisson" in place of "shuffled_batches" in the profile'


class NoiseByParties(Unsound):
    """the opener of the total adds the noise, and here the parties open it, so that each of them would see the exact total"""

    hint = 'add the noise at the parties: kind = "gaussian" or "noise_shares"'


class SharesInTheClear(Unsound):
    """each party adds only a share of the noise, and here somebody can see the answer of a single party"""

    hint = 'add the shares under masked sums, or let each party add all the noise: kind = "gaussian"'


class NotNoisedByWord(Unsound):
    """the budget protects each word occurrence, and the rows of this question are per {unit}, without noise for single words"""

    unit: str
    hint = 'put laplace_counts before everything that reads documents, or give the profile a budget without unit = "word"'


class WordNoiseOnly(Unsound):
    """noise on single word occurrences hides no whole {unit}, so it does not meet a budget for each {unit}"""

    unit: str
    hint = 'say unit = "word" in [budget], or bound each {unit}\'s row and add noise for that bound instead'


class TooFewForProfile(Misuse):
    """{found:party is|parties are} fewer than the {need} that profile {profile!r} needs"""

    found: int
    need: int
    profile: str
    hint = "deal the documents out to more parties, or take another profile: `securetm explain open` says what that gives up"
