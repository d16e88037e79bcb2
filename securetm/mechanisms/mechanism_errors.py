"""Why a mechanism cannot protect a question, and noise that cannot be drawn. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, Unsound


class RawCounts(Unsound):
    """the exact counts of words would be released, as in Equations 7 and 20 of iFTM, and that has no finite epsilon"""

    hint = "leave out `raw` of laplace_counts: it is for reproduction only, and no profile may carry it"


class NoiseForPersons(Unsound):
    """laplace_counts hides one word occurrence, and this question's rows are per person"""

    hint = 'give [budget] unit = "word"; a person\'s documents are hidden by a clip and noise for its bound instead'


class NoiseOnSamples(Unsound):
    """laplace_counts draws its noise once for a whole corpus, and here each round brings other documents ({rate} of them)"""

    rate: str
    hint = "in the profile, put the [[mechanism]] laplace_counts before the one that samples documents"


class WordsUnknown(Misuse):
    """these documents are behind noise, so their words cannot be split into a known half and one to predict"""

    hint = "judge the model by documents whose words are known"


class NoiseWithoutClip(Unsound):
    """{mechanism} has no bound to measure its noise by: nothing limits what one {unit} adds to the sum"""

    mechanism: str
    unit: str
    hint = "in the profile, put a [[mechanism]] that clips real rows or bounds counts before the one that adds noise"


class NoiseOnNoise(Unsound):
    """{mechanism} meets a vector that already carries shares of noise, so nobody could say what both together spend"""

    mechanism: str
    hint = "in the profile, keep one mechanism that adds noise"


class TooFewShares(Unsound):
    """of {threshold} parties that must remain, {colluding} may collude: no honest share of noise is certain"""

    threshold: int
    colluding: int
    hint = "raise `threshold_share` (or `threshold`) of the profile, or lower `colluding`"


class RangeTooSmall(Unsound):
    """{crowd} rows of this question need values up to {needed} steps, and {bits} bits leave each of {parties} parties {most}"""

    crowd: int
    needed: str
    bits: int
    parties: int
    most: str
    hint = "of fixed_point: lower `steps` (a coarser grid), `crowd` or `headroom`, or set `ring` = 64"


class NoiseBeforeRounding(Unsound):
    """a share of noise must be added after rounding, not before"""

    hint = "in the profile, put the [[mechanism]] that rounds before the one that adds noise"
