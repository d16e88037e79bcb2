"""The likelihood ratio test of membership: where a score falls with a document in the training, and where without it.

It trains nothing and knows no model: it is given scores, one for each shadow model and document (Carlini et al. 2022).
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.errors import BadSetting

_LEAST = 1e-12  # of a variance: scores that never move tell nothing, and must not divide by zero


def log_ratios(scores: Array, of_shadows: Array, inside: Array) -> Array:
    """How much likelier each document's score is with the document in the training than without, as a logarithm.

    `of_shadows` and `inside` are shadow models x documents: the score, and whether the document was trained on. With and
    without it a score is normal about two means, with one variance for both: of so few models two would be poor guesses
    (Carlini et al. 2022, section 6, share it when models are few).
    """
    within, without = inside.sum(axis=0), (~inside).sum(axis=0)
    if len(inside) < 3 or not (within.all() and without.all()):
        raise BadSetting("likelihood ratio", "shadows", str(len(inside)), "must be 3 or more, with each document in some only")
    member = np.where(inside, of_shadows, 0.0).sum(axis=0) / within
    other = np.where(inside, 0.0, of_shadows).sum(axis=0) / without
    spread = np.square(of_shadows - np.where(inside, member, other)).sum(axis=0) / (len(inside) - 2)
    found: Array = (np.square(scores - other) - np.square(scores - member)) / (2 * np.maximum(spread, _LEAST))
    return found
