"""What a table of counts says where noise was added to it. It adds none, and knows of none but what the table shows.

All of it is a function of what was opened, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array


def above_noise(counts: Array, deviations: float) -> Array:
    """Counts of topics x words; those that noise alone may have made, below so many deviations of it, say no more than that
    word's mean over all such topics, in which most of the noise is gone.

    How large the noise is the table tells by itself: true counts are not negative, and where the truth is 0 the mean square
    of what came out negative is the noise's variance. Where nothing was added, nothing is negative and nothing is changed.
    """
    negative = counts[counts < 0]
    if not len(negative):
        return counts
    deviation = float(np.sqrt(np.mean(np.square(negative, dtype=np.float64))))
    clear = counts > deviations * deviation
    means = np.where(clear, 0, counts).sum(axis=0) / np.maximum((~clear).sum(axis=0), 1)
    found: Array = np.where(clear, counts, np.maximum(means, 0))
    return found
