"""What a training began from, and how far each topic moved since an earlier model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, State
from securetm.models.quality import top_words
from securetm.plans.agreement import Agreement
from securetm.plans.schema import MOMENTS, PLAIN, PUBLIC
from securetm.quality.similarity import affinity

EARLIER = "earlier"


@dataclass(frozen=True)
class Beginning:
    """How a training began, in public facts."""

    start: str  # earlier, public, moments or plain
    vectors: str  # that a public start read, or a start by moments beside its sum
    words_known: int  # by these vectors
    control: State | None  # the state of a public start with these vectors
    lacking: bool  # whether it would have been public by default, and no vectors are here

    @classmethod
    def under(cls, agreement: Agreement, vocabulary: Sequence[str]) -> Self:
        """What this agreement begins with, over these words."""
        public, first = agreement.begun_with(vocabulary) if vocabulary else None, agreement.plan.training.start == MOMENTS
        if public is None or agreement.vectors is None:
            start = MOMENTS if first else PLAIN if agreement.earlier is None else EARLIER
            return cls(start, "", 0, None, agreement.begins_public_by_default and agreement.vectors is None)
        known = int(public.vectors.any(axis=1).sum())
        return cls(MOMENTS if first else PUBLIC, agreement.vectors.shown, known, agreement.start(vocabulary), False)

    def facts(self, words: int) -> dict[str, Any]:
        """For the record of a run."""
        known = {"vectors": self.vectors, "words_known": self.words_known, "words": words} if self.vectors else {}
        return {"topics": self.start, **known, "lacking": self.lacking}


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
