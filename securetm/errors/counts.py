"""Why counts cannot be given noise, or cannot be read behind it."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse, Unsound


@dataclass(eq=False)
class RawCounts(Unsound):
    """counts of the words themselves would be released, as iFTM's Equations 7 and 20 are printed: that has no epsilon at all"""

    hint = "leave out `raw` of laplace_counts: it is for reproduction only, and no profile may carry it"


@dataclass(eq=False)
class NoisedTwice(Unsound):
    """laplace_counts meets documents whose counts are behind noise already"""

    hint = "in the profile, keep one laplace_counts; its epsilon is all that the counts' noise depends on"


@dataclass(eq=False)
class NoiseForPersons(Unsound):
    """laplace_counts hides one word occurrence, and this question's rows are per person"""

    hint = 'give [budget] unit = "word"; a person\'s documents are hidden by a clip and noise for its bound instead'


@dataclass(eq=False)
class NoiseOnSamples(Unsound):
    """laplace_counts draws its noise once for a whole corpus, and here each round brings other documents ({rate} of them)"""

    rate: str
    hint = "in the profile, put the [[mechanism]] laplace_counts before the one that samples documents"


@dataclass(eq=False)
class WordsUnknown(Misuse):
    """these documents are behind noise, so nobody can share out their words to predict one half from the other"""

    hint = "judge the model by documents whose words are known"


@dataclass(eq=False)
class TooManyWords(Misuse):
    """{found} words are more than the {most} that noise on counts is worked out for"""

    found: int
    most: int
    hint = "use a shorter vocabulary"
