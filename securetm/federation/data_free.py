"""What a training began with, and the data-free control: the figures of a public start that read no document.

Whoever uses public vectors is to be judged beside what these say by themselves. Nothing here is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from securetm.contracts import State
from securetm.plans.agreement import Agreement
from securetm.plans.schema import MOMENTS, PLAIN, PUBLIC

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
    def of(cls, agreement: Agreement, vocabulary: Sequence[str]) -> Self:
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
