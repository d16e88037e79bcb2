"""Public weights of words in a row that is clipped: frequent words weigh less, so that less of a row's length is theirs.

They are no estimate and no noise. A weight is undone where the sum arrives, and the noise of its word with it.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array, State

EXPONENTS = "word_exponents"  # the array of a state: the weight of a word is 2 to that power, so that no product is rounded
_MOST = 4  # no exponent is further from 0
_POWER = -0.25  # of a word's frequency: the noise of its counts is then nearer to a fixed share of them


def unweighted(words: int) -> Array:
    """Exponents that change nothing."""
    return np.zeros(words, dtype=np.int64)


def exponents_for(frequencies: Array) -> Array:
    """The exponents for words of such frequencies, or counts. A word as frequent as the average one has exponent 0."""
    relative = np.maximum(frequencies, 1e-300) / max(float(frequencies.mean()), 1e-300)
    found: Array = np.clip(np.rint(_POWER * np.log2(np.maximum(relative, 1e-300))), -_MOST, _MOST).astype(np.int64)
    return found


def weights_in(state: State, words: int) -> Array:
    """The weights that a state asks for. A state of an earlier version asks for none, and a lie is clamped to what may be."""
    exponents = state.get(EXPONENTS, unweighted(words))
    found: Array = np.ldexp(1.0, np.clip(exponents, -_MOST, _MOST).astype(np.int32))
    return found
