"""What a table of counts says where noise was added to it. It adds none, and knows of none but what the table shows.

All of it is a function of what was opened, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array


def above_noise(counts: Array, deviations: float) -> Array:
    """The counts, with 0 in place of those that noise alone may have made: below so many deviations of it.

    How large the noise is the table tells by itself: true counts are not negative, and where the truth is 0 the mean square
    of what came out negative is the noise's variance. Where nothing was added, nothing is negative and nothing is changed.
    """
    negative = counts[counts < 0]
    if not len(negative):
        return counts
    deviation = float(np.sqrt(np.mean(np.square(negative, dtype=np.float64))))
    kept: Array = np.where(counts > deviations * deviation, counts, 0)
    return kept
