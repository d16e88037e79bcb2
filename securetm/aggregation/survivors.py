"""A question is opened over one list of survivors, in whatever session it is asked again. It knows no answer, only lists.

Two sums of the same vectors over lists that one party tells apart show that party's vector; a coordinator needs no ill will for
it: it is enough that it starts again, and that somebody is gone by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from securetm.contracts import Cohort, Cupboard
from securetm.errors import SurvivorsChanged
from securetm.tables import digest


@dataclass(frozen=True)
class OneList:
    """Run by a party: what it holds a question to. A cohort that names no question is held to nothing."""

    cupboard: Cupboard
    question: bytes

    @classmethod
    def of(cls, cupboard: Cupboard, cohort: Cohort) -> OneList:
        """For the question that this cohort is asked."""
        return cls(cupboard, cohort.question)

    def hold(self, survivors: Sequence[str]) -> None:
        """Durable before anything leaves by which these survivors' sum could be opened; another list is refused for ever."""
        if not self.question:
            return
        key, listed = f"survivors {self.question.hex()}", digest(sorted(survivors))
        before = self.cupboard.get(key)
        if before is None:
            self.cupboard.put(key, listed)
        elif before != listed:
            raise SurvivorsChanged()
