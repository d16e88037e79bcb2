"""The likelihood ratio test of membership by the scores of shadow models (Carlini et al. 2022). It trains nothing."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.errors import BadSetting

_LEAST = 1e-12  # variance: constant scores must not divide by zero


def log_ratios(scores: Array, of_shadows: Array, inside: Array) -> Array:
    """The log-likelihood ratio of each document's score: with the document in the training, against without it.

    `of_shadows` and `inside` are shadow models x documents: the score, and whether the document was trained on. A score is
    normal with one of two means. Both have one variance, because few models estimate two badly (Carlini et al. 2022, section
    6).
    """
    within, without = inside.sum(axis=0), (~inside).sum(axis=0)
    if len(inside) < 3 or not (within.all() and without.all()):
        raise BadSetting("likelihood ratio", "shadows", str(len(inside)), "must be 3 or more, with each document in some only")
    member = np.where(inside, of_shadows, 0.0).sum(axis=0) / within
    other = np.where(inside, 0.0, of_shadows).sum(axis=0) / without
    spread = np.square(of_shadows - np.where(inside, member, other)).sum(axis=0) / (len(inside) - 2)
    found: Array = (np.square(scores - other) - np.square(scores - member)) / (2 * np.maximum(spread, _LEAST))
    return found
