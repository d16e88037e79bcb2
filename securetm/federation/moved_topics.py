"""How far each topic moved since the model that a training went on from, and the words that came and went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array, State
from securetm.models.quality import top_words
from securetm.plans.agreement import Agreement
from securetm.quality.similarity_scores import affinity

_WORDS = 10  # of a topic, among which words come and go


def hellinger(before: Array, after: Array) -> Array:
    """Returns the Hellinger distance of each pair of rows: 0 if they are equal, 1 if they share no word."""
    common = np.sqrt(before * after).sum(axis=1)
    distances: Array = np.sqrt(np.clip(1.0 - common, 0.0, 1.0))
    return distances


def moved(before: Array, after: Array, vocabulary: Sequence[str]) -> list[dict[str, Any]]:
    """Returns for each topic its distance from what it was, the words that came and went, and the topic now most like it.

    Topics that were not there before have no distance.
    """
    distances, closest = hellinger(before, after[: len(before)]), affinity(before, after).argmax(axis=1)
    rows: list[dict[str, Any]] = []
    for topic, (old, new) in enumerate(zip(top_words(before, _WORDS), top_words(after, _WORDS), strict=False)):
        rows.append(
            {
                "topic": topic,
                "distance": round(float(distances[topic]), 4),
                "came": [vocabulary[word] for word in new if word not in old],
                "gone": [vocabulary[word] for word in old if word not in new],
                "closest": int(closest[topic]),
            }
        )
    more = range(len(before), len(after))
    return rows + [{"topic": topic, "distance": None, "came": [], "gone": [], "closest": None} for topic in more]


def moved_since(agreement: Agreement, state: State, vocabulary: Sequence[str]) -> list[dict[str, Any]] | None:
    """Returns how far the topics moved since the model that this training went on from; None where it began anew."""
    earlier = agreement.earlier
    if earlier is None or not state:
        return None
    return moved(earlier.model.topics(earlier.state), agreement.model.topics(state), vocabulary)
