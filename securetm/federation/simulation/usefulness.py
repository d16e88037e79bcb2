"""Judges whether a model is useful: it must predict held-out words better than word frequencies alone.

Only the simulation can say it, since it plays all roles: the frequencies are those of all parties' training documents. No party
sends them, and none of these figures is an answer to anybody's question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.models.quality import mean_per_word

_ALIKE = 0.005  # nats per word: no topic model is made for half a percent of perplexity
_FEW = 10  # documents: an interval of fewer is wrong too often


@dataclass(frozen=True)
class Predicted:
    """For each held-out document of one party: the log-likelihoods of its unseen words, and how many there are."""

    model: Array
    frequencies: Array
    words: Array
    each: float  # how many documents each stands for


def judged(parties: Sequence[Predicted], vocabulary: int) -> dict[str, Any]:
    """Returns the verdict `useful`: whether the model surely predicts better than word frequencies; None if that is open."""
    columns = ("model", "frequencies", "words")
    model, alone, words = (np.concatenate([getattr(one, name) for one in parties]) for name in columns)
    weights = np.concatenate([np.full(len(one.words), one.each) for one in parties])
    if not words.sum():
        return {"useful": None, "baseline": None}
    uniform = -np.log(vocabulary) * words
    gain, guess = (mean_per_word(model - other, words, weights) for other in (alone, uniform))
    perplexities = {
        name: _finite(float(np.exp(-mean_per_word(found, words, weights)[0])))
        for name, found in (("model", model), ("word_frequencies", alone))
    }
    facts = {**perplexities, "uniform": float(vocabulary), "documents": int((words > 0).sum()), "words": int(words.sum())}
    interval = {name: _finite(value) for name, value in zip(("value", "low", "high"), gain, strict=True)}
    baseline = {**facts, "gain": {**interval, "unit": "nats per word"}, "worse_than_uniform": not guess[2] >= 0}
    return {"useful": _verdict(gain, int((words > 0).sum())), "baseline": baseline}


def of_whole_texts(useful: dict[str, Any]) -> dict[str, Any]:
    """Returns the verdict on a model that reads embeddings: these were made of whole texts, unseen words included.

    Its perplexity is too low to say that the model is of use. Where it is no better even so, the model is of no use.
    """
    if useful["baseline"] is None:
        return useful
    verdict = None if useful["useful"] else useful["useful"]
    return {"useful": verdict, "baseline": {**useful["baseline"], "from_whole_texts": True}}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _verdict(gain: tuple[float, float, float], documents: int) -> bool | None:
    """Returns the verdict, or None for too few documents. A model with infinite perplexity is of no use."""
    value, low, high = gain
    if not np.isfinite(value):
        return False
    if documents < _FEW:
        return None
    if low > 0:
        return True
    return False if high < 0 or max(-low, high) < _ALIKE else None
