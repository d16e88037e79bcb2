"""Slot noise that is tried, and how well counts fit its law. It tests nothing itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse, stats

from securetm.contracts import Array
from securetm.mechanisms.slot_noise import SlotNoise

SECRET, OTHER = bytes(range(32)), bytes(32)
CHANCE = 1e-7  # that an honest sampler fails one test; its secrets are fixed, so it is the same in every run
LAWS_TRIED = [
    SlotNoise(11, 8.0, 0.2, whole=True),
    SlotNoise(11, 1.0, 0.2, whole=True),
    SlotNoise(7, 0.1, 1.5, whole=True),
    SlotNoise(11, 1.3, 0.0, whole=True),
    SlotNoise(11, 8.0, 0.2, whole=False),
    SlotNoise(11, 11.0, 0.0, whole=False),
    SlotNoise(7, 0.1, 0.2, whole=False),
    SlotNoise(11, 3.0, 1.5, whole=False),
]


def dense(law: SlotNoise, words: Array, secret: bytes = SECRET, first: int = 0) -> Array:
    """Slots as rows of counts."""
    ends, ids, weights = law.draw(secret, words, first)
    return np.asarray(sparse.csr_array((weights, ids, ends), shape=(len(words), law.size)).toarray())


def tail(law: SlotNoise, k: Any) -> Any:
    """P(Y >= k steps), as the law is written down: P(Y = k) proportional to r^|k|."""
    rate = law.epsilon / law.steps
    k = np.asarray(k, dtype=float)
    above = np.exp(-rate * np.maximum(k, 1)) / (1 + math.exp(-rate))
    below = np.exp(-rate * np.maximum(1 - k, 1)) / (1 + math.exp(-rate))
    return np.where(k >= 1, above, 1 - below)


def misfit(law: SlotNoise, values: Array, shift: int) -> float:
    """The p-value of counts that should be `shift` steps plus noise, thresholded, by a chi-square over about 60 classes."""
    steps = np.rint(values * law.steps).astype(np.int64)
    ladder = np.linspace(tail(law, law.least - shift), 0, 61)[1:-1]
    rate = law.epsilon / law.steps
    cuts = np.unique([law.least, *(shift + np.floor(-np.log(ladder * (1 + math.exp(-rate))) / rate)).astype(np.int64)])
    cuts = cuts[cuts >= law.least]
    chances = -np.diff(np.concatenate([[1.0], tail(law, cuts - shift), [0.0]]))
    found = np.bincount(np.searchsorted(cuts, steps, side="right"), minlength=len(cuts) + 1)
    kept = chances * len(values) >= 5
    rest = (found[~kept].sum(), chances[~kept].sum() * len(values))
    found, wanted = np.append(found[kept], rest[0]), np.append(chances[kept] * len(values), rest[1])
    found, wanted = (found, wanted) if rest[1] >= 1 else (found[:-1], wanted[:-1] * found[:-1].sum() / wanted[:-1].sum())
    return float(stats.chisquare(found, wanted * found.sum() / wanted.sum()).pvalue)
