"""What a model whose topics are counts keeps of an earlier model that it goes on from: its counts, as a prior of every topic.

A training that goes on adds them, times a weight, to each sum of new counts. So topics keep their numbers and their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from securetm.contracts import Array, State

EARLIER, WEIGHT = "earlier", "earlier_weight"  # arrays of a state; parties do not get them
_MOST = 1e12
_SPREAD = 0.1  # shape of the noise that makes new topics differ: the smaller, the fewer words stand out


def earlier_counts(state: State) -> Array | float:
    """The counts that an update adds to those of the documents; 0 where the training began anew."""
    return state[WEIGHT][0] * state[EARLIER] if EARLIER in state else 0.0


def started_from(earlier: Array, topics: int, rng: np.random.Generator) -> Mapping[str, Array]:
    """The arrays of a state that goes on from these counts. Topics beyond theirs begin as noise around word frequencies.

    Counts are clamped, since they come out of a file.
    """
    known = np.clip(np.nan_to_num(np.asarray(earlier, dtype=np.float64), nan=0.0), 0.0, _MOST)
    new = known.mean(axis=0) * rng.gamma(_SPREAD, 1.0 / _SPREAD, (topics - len(known), known.shape[1]))
    return {
        "counts": np.concatenate([known, new]),
        EARLIER: np.concatenate([known, np.zeros(new.shape)]),
        WEIGHT: np.ones(1),
    }


def without_earlier(state: State) -> State:
    """The state without what it keeps of an earlier model."""
    return {name: array for name, array in state.items() if name not in (EARLIER, WEIGHT)}


def earlier_fit(state: State, topics: int, words: int) -> bool:
    """Whether a state has an earlier model's counts and their weight with the shapes that such a table gives, or neither."""
    like = {EARLIER: (topics, words), WEIGHT: (1,)}
    found = {name: state[name].shape for name in like if name in state}
    return found in ({}, like) and all(state[name].dtype == np.float64 for name in found)
